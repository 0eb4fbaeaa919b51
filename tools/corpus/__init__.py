"""Other people's programs, measured by the harness and by a script of its own."""
