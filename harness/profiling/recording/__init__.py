"""What runs inside the profiled program: light, and never in its way."""
