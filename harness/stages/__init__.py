"""Trace, lower, compile, load, dispatch, execute: how the time of each stage is taken."""
