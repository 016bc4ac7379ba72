"""What an expression stands for: names, calls, tables and records followed to what makes a value, and what kind it is of."""
