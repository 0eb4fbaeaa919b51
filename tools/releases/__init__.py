"""What changed from one release of JAX to the next: `python -m tools.releases`."""
