"""The page: the history of a home, of lakeFS and of Conductor, looked at in a browser."""
