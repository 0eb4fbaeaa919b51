"""Tests of the asv adapter, with the real asv on small projects made for the purpose."""
