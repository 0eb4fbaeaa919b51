"""The asv adapter."""
