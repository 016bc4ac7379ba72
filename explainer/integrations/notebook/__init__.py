"""`%load_ext gradfix`: failed cells explained in place."""
