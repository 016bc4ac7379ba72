"""Settings, in code or in a file: read, changed, added, taken out, and checked after the edit."""
