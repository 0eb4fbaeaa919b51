"""Functions and arguments as other people's projects have them; nothing here knows the harness."""
