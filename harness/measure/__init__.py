"""Run a sweep: the plan, the isolated processes that measure it, and their records."""
