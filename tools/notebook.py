"""Execute a notebook with this Python's own kernel: `python -m tools.notebook docs/analysis.ipynb`.

The file is written anew with its outputs, without what changes from run to run and place to place:
times, identities of cells' runs, versions.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def execute(path: Path, scratch: Path) -> None:
    """Run all cells of the notebook at `path`, in its folder, and write it with its outputs.

    The kernel's own files go to the folder `scratch`.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed; nothing was written.
    """
    import nbformat
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    # Without folders of kernels, `python3` is the interpreter that runs this.
    kernel = AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
        transport="ipc",  # no port of the machine is opened
        ip=str(scratch / "kernel"),
    )
    client = NotebookClient(
        notebook,
        km=kernel,
        timeout=240,
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(notebook, path)


def main(path: Path) -> None:
    """Execute one notebook, with nothing of this machine's Jupyter."""
    with tempfile.TemporaryDirectory(prefix="harness-notebook-") as scratch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
            os.environ[name] = str(Path(scratch, name.lower()))
        root = str(Path(__file__).resolve().parents[1])
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, [root, os.environ.get("PYTHONPATH")])
        )
        execute(path.resolve(), Path(scratch))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
