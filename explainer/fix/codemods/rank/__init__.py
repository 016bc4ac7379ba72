"""What ranks do together: collectives that each of them has to come to."""
