"""What the program says: one template for each code, in a terminal, Markdown or HTML."""
