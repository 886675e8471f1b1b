"""A worker under Conductor: one supervisor, its executors, their leases."""
