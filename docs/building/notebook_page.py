"""A notebook, executed and stored with its output, as a page."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def notebook_page(path: Path) -> str:
    """Return the text of a notebook (nbformat 4) as Markdown: tables as HTML, figures inside."""
    notebook = json.loads(path.read_text())
    return "\n\n".join(part for cell in notebook["cells"] for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
    elif cell["cell_type"] == "code":
        yield f"```python\n{source}\n```"
        for output in cell["outputs"]:
            yield _shown(output)


def _shown(output: dict[str, Any]) -> str:
    data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    if "image/svg+xml" in data:
        svg = base64.b64encode(data["image/svg+xml"].encode()).decode()
        alt = "Figure: the output of the code above"
        return f'<p><img alt="{alt}" src="data:image/svg+xml;base64,{svg}"></p>'
    if "text/html" in data:
        return _table(data["text/html"])
    text = "".join(output.get("text", [])) or data.get("text/plain", "")
    return f"```text\n{text.rstrip()}\n```"


def _table(html: str) -> str:
    """Return a table as pandas writes it, in the site's own style: without classes and gaps."""
    html = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
    html = re.sub(r'<table border="1" class="dataframe">', "<table>", html)
    html = re.sub(r' style="text-align: \w+;"', "", html)
    return "\n".join(line for line in html.splitlines() if line.strip())
