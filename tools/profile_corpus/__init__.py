"""Programs of other people that `harness profile` is tried on, and what it has to say of them."""
