"""Everything that decides lives here, and nothing else.

No I/O, no clock, no randomness, no environment, no logger: values in, values out.
``tests/test_architecture.py`` keeps it so.
"""
