"""One attempt as a transaction; begin with ``lifecycle``."""
