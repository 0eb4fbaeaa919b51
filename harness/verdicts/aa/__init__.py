"""What `harness aa` does: measure how often this machine's verdicts are wrong."""
