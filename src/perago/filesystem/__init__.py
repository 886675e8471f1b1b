"""Directories on this machine: where they are, who may look inside, and how to walk them."""
