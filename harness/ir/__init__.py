"""`harness ir`: build the program of one case, or find what was recorded, and compare two."""
