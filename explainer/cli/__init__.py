"""The command line. `entry` is the program; `explain` takes a path that imports as little as it can."""
