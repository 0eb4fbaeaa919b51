"""A whole night on one machine: environments, measuring, verdicts, summary; restartable."""
