"""Which parameters there are, train, and are stepped: registered, thawed, listed, named, in train mode."""
