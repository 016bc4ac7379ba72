"""The autograd graph as source shows it: cuts, in-place writes and what they overwrite, what a backward keeps, segments."""
