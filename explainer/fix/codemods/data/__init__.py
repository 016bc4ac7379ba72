"""Data on their way to the model: batches, padding, columns, labels, codes, tables."""
