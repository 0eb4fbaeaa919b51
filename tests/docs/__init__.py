"""What the pages show is run: examples, the transcript of the first page, pictures."""
