"""Stands on the path of every program that the tests start: its cycles are collected seldom.

Importing torch makes a million objects and no garbage, of which Python's collector looks through all, again and again:
a sixth of the time of a program that trains five steps.
"""

import gc

gc.set_threshold(100_000, 50, 1000)
