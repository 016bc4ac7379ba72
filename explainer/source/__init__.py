"""Reads the user's program. Only `.py` files and notebooks that a frame names are read, and nothing is executed.

Here are the files and their names; the rooms below answer what a program does: `value` what an expression stands for, `setting`
where a setting is written, `loop` in which order it trains, `graph` what autograd records, `network` which parameters it has,
`data` and `loss` what goes in and what comes out.
"""
