"""Backward calls, and what they go through a second time: one for one loss, computed anew in its round, each for its own part."""
