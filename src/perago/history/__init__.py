"""What happened: the event log, and everything that is read from it."""
