"""What runs inside the user's process: standard library and torch only, loaded by file path under a private name."""
