"""The external ledger (K5): what executions decided and what became of it, in a database."""
