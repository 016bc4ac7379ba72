"""Writes in place that destroy what a backward needs: copied before, put out of place, made under no_grad, made seen."""
