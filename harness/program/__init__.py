"""What was built: the facts of a program, its identity, and its text."""
