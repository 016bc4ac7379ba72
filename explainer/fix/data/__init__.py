"""Data on their way to the model: what makes a batch, cuts a split, moves to NumPy or to a device."""
