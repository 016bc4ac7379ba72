"""Data on its way to the model: loaders, columns, labels, views, tables, lengths."""
