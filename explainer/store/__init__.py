"""The user's state folder: the journal of applied patches. Nothing of it lies in the project."""
