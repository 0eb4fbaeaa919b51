"""Where the wall time went: pieces that do not overlap, and what they add up to."""
