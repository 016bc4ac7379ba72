"""The hooks of a program, and what they or the modules' own forwards collect: who reads that for a loss, and who empties it."""
