"""The stages of a program's life, and how each is taken."""
