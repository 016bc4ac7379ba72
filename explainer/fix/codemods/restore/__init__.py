"""Saved states: keys, shapes, devices and memory of what is loaded."""
