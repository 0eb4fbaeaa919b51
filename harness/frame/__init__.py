"""Read what was measured into pandas, and show it."""
