"""Tests of `harness init`, on packages made for the purpose."""
