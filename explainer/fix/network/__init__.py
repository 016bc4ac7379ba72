"""The parts of a model: layers and their paths, buffers, poolers, what is frozen, what is loaded."""
