"""Programs as bodies of tasks: started by a launcher, heard, ended with all they started."""
