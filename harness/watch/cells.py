"""What a notebook calls its cells, whose files have names that change with every run."""

import sys
from typing import Any


def file_of(file: str) -> str:
    """Return the name of a cell, as IPython has it in tracebacks: `In[3]`; else the file itself."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    try:
        kind, name = shell.compile.format_code_name(file)
    except (AttributeError, TypeError, ValueError):  # no notebook, an old one, or no cell's file
        return file
    return str(name) if kind == "Cell" else file
