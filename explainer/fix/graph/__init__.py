"""What is recorded: leaves, cuts and their removal, kept values, grad mode, checkpointing, NumPy as torch."""
