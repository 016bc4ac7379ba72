"""What a loss is made of: its reduction, its mask, its logarithms, the turn at which it is computed."""
