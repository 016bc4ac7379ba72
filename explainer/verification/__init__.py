"""Runs the user's command, alone or for a few steps under watch, and judges what it did."""
