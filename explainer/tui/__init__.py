"""The terminal interface: screens over the facade. Nothing of it is loaded by any other command."""
