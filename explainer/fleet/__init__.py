"""Triage of many logs: what breaks, how often, where.

The way: words of the command line -> objects (`listing`) -> rows, one a failure (`explained`, in processes of `pool` or of
`ray_engine`) -> parts on disk (`part`) -> table, Parquet, report, clusters of what is unknown (`outcome`).
"""
