"""Calls, names and settings as the installed releases take them."""
