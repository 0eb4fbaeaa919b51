"""Workloads that are compiled for devices that are not there."""
