"""Moving bytes: copies on this machine, many at a time, and the cache that makes most needless."""
