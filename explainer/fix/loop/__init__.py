"""Who is called in a training loop, and when: hooks, listeners, schedules."""
