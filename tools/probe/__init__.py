"""What a user expects of JAX's persistent cache, and what happens: real processes and directories.

`python -m tools.probe --write docs/cache/probe.md` tries every row on an installation, keeps
the evidence in probe-results/ beside the page, and writes the page of all installations there.
"""
