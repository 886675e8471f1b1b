"""Orders of a small shop: bronze, silver, gold, each step a transaction."""
