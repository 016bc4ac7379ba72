"""Watches every operation of a program: what it writes in place, where it cuts the graph, what first is not finite."""
