"""Remedies as changes of the program's own files, each proven by running what it changes."""
