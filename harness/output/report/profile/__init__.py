"""The HTML report of a profile."""
