"""Dtypes: casts where a value is born or used, half precision and autocast."""
