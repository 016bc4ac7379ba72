"""Reads the user's program. Only `.py` files and notebooks that a frame names are read, and nothing is executed."""
