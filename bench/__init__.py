"""Measurements: all contenders alternately in one run, medians, and ratios instead of seconds."""
