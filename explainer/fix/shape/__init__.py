"""What a layer or a view says of the axes and sizes that it wants."""
