"""Every verb and option of asv beside the harness: `python -m tools.asv_conformance`."""
