"""Devices: operands, batches, draws and modules brought to where the rest is; what a captured graph refuses."""
