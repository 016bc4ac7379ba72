"""Settings of a program: where they are written, in files and in code, and which of them a value comes from."""
