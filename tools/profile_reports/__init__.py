"""Published reports of slow or repeated compiles, each with a program of the same kind."""
