"""The codemods that rules name, in rooms by what they put right: one file each, with a function `propose`."""
