"""Adapters of PEFT: which modules they sit in, which one is active, what of them is saved, merged, trained."""
