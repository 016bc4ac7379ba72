"""Writes fixes: plans edits for a finding, splices them, applies and undoes them."""
