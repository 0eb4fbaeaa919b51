"""JAX's persistent compilation cache: what it holds, what it did, and why it missed."""
