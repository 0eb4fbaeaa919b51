"""Figures that commands draw into a file, one subject each."""
