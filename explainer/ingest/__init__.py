"""Text or exception in, `Incident` out.

The way of a log: bytes -> text (`encoding`, `stream`) -> lines without colour and prefix, by rank (`terminal`, `prefix`)
-> blocks (`traceback`, `ipython`, `boxed`, `warning`, `metric`, `fact`, `launcher`) -> incidents (`assembly`).
"""
