"""Tests of what is recorded inside a program."""
