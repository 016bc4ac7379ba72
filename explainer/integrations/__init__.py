"""gradfix inside other programs: hooks, notebooks, trainers."""
