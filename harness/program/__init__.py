"""What JAX and XLA built: a program's text, fingerprint and facts, and where its compile went."""
