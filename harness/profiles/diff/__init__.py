"""What changed between two profiles."""
