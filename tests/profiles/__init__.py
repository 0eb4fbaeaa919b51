"""Tests of profiling."""
