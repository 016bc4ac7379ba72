"""The data that flows through gradfix: frozen dataclasses, tuples, no behaviour beyond simple look-ups.

Names follow STYLE: an *incident* is a failure as read, *evidence* an observed fact, a *finding* a cause ranked for an
incident with its evidence, a *fix* a proposed cure.
"""
