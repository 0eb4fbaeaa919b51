"""What JAX does, seen from inside: every private name of JAX, events, and followed processes."""
