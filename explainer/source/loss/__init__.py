"""Losses: what they compare, how they are reduced and weighted."""
