"""Taxi trips on Spark: bronze, silver, gold, each step a transaction."""
