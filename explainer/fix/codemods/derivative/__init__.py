"""Derivatives: custom Functions and hooks, second derivatives, function transforms, gradients asked for by name."""
