"""A profile as a trace that Perfetto and chrome://tracing open."""
