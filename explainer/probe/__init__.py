"""Facts of an interpreter and its machine, read from files and the driver; torch is never imported.

Each fact says where it was read, and what could not be read says why. Everything is bounded in time.
"""
