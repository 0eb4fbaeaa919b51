"""Remedies that a profile advises, followed to the letter by small programs."""
