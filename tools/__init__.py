"""What builds the project and is not part of it."""
