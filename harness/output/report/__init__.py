"""The report: one HTML file with interactive figures, and the same figures as images."""
