"""Losses: what they compare, what a model or a step hands back as one, how they are reduced."""
