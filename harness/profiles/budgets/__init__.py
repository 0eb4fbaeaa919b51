"""How much a program may build: as a decorator, as marks of pytest, and in a file."""
