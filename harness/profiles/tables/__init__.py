"""A profile as frames and tables."""
