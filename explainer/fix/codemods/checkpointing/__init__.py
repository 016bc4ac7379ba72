"""Activation checkpointing: what a replayed segment needs, and that it runs the same twice."""
