"""Shapes: axes, widths, broadcasting, views, recurrent states, masks of attention."""
