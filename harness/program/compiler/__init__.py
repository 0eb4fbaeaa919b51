"""The inside of a compile: XLA's own events, as a tree, in groups, by kernel and by line."""
