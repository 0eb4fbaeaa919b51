"""Workloads with baselines: sound ones, and one for each mistake that a comparison must notice."""
