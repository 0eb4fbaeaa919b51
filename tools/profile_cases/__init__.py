"""Programs on which a profile was once wrong, two more of each kind, and what is right of them."""
