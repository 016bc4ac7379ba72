"""What is data leaves the graph: targets, teachers, carried states, stores, logs."""
