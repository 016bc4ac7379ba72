"""What is shown: one file a screen, and the dialogs over them."""
