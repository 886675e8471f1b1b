"""What happened: the event log."""
