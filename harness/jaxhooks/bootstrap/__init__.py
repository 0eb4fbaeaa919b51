"""What Python runs at start-up in a program that is followed; see `sitecustomize.py`."""
