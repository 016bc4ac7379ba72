"""Where a failure stands and what it points at: its frames, words, tensors, and what the tracer saw."""
