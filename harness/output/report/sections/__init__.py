"""The sections of the report, a module each; every one answers one question."""
