"""The hooks of a program: what registers them, what forward hooks collect, who reads that for a loss, and who empties it."""
