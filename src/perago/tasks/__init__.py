"""What an author declares: the decorator, its specifications, and how modules are loaded."""
