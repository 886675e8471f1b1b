"""Measurements: all contenders in turn in one run, how often each ran, and ratios of medians."""
