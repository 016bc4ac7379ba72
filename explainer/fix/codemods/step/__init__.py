"""Steps in their order: clearing, clipping, scaling, stepping, schedules, events; how many and how large they are."""
