"""In-place writes, with what is given out of place, and parameters that the program moves by hand."""
