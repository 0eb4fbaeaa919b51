"""What can only be verified on a GPU: each check in a process of its own, none needed by another.

`python -m tools.gpu` runs them all (`make gpu` does), and writes a line of JSON for each; so does
pytest, with `-m gpu`.
"""
