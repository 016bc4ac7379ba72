"""What runs beside the interface, in threads; no Textual in it."""
