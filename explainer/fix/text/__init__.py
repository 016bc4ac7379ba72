"""Text that edits write: calls, arguments, imports, what stands in `__init__`, as the file spells it."""
