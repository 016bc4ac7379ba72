"""Values that stay finite: stable forms, guarded arguments, masked rows, empty means."""
