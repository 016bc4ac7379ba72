"""Reads and checks the rule base: `knowledge/` beside or inside the package, and rules that a user brings.

TOML is read and validated once (`source`, `schema`); what `explain` loads is one JSON bundle (`bundle`), which the wheel
carries and a checkout keeps beside its rules. Rules are data: nothing in them is executed.
"""
