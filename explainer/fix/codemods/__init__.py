"""The codemods that rules name: one file each, with a function `propose`."""
