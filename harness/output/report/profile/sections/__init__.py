"""The report's sections, one module each."""
