"""Modules and their parameters: parts and names, what is frozen, optimized, averaged, merged, loaded."""
