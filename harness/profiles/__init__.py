"""Explain the compilations of any program: which function, from where, why, and what it costs."""
