"""asv's pages without the hosts that they load their scripts from: npm gives the same releases."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

SCRIPTS = {
    r"jquery-3\.3\.1\.min\.js": ("jquery@3.3.1", "dist/jquery.min.js"),
    r"(jquery\.flot(?:\.\w+)??)\.min\.js": ("flot@0.8.3", r"\1.js"),
    r"(jquery\.flot\.orderBars\.js)": ("flot-orderbars@1.0.0", r"js/\1"),
    # npm lacks 1.0.1; the tables of an overview that is not shown are sorted with it.
    r"(stupidtable\.min\.js)": ("stupid-table-plugin@1.1.3", r"\1"),
    r"(md5\.min\.js)": ("blueimp-md5@2.19.0", r"js/\1"),
    r"(bootstrap\.min\.(js|css))": ("bootstrap@3.1.1", r"dist/\2/\1"),
}
"""By the file that `index.html` of asv 0.6.6 names: the package of npm, and the file in it."""
_ADDRESS = re.compile(r'(src|href)="https://[^"]+/([^"/]+)"(?: [a-z]+="[^"]*")*')


def _local(found: re.Match[str]) -> str:
    for name, (package, place) in SCRIPTS.items():
        file = re.fullmatch(name, found[2])
        if file:
            return f'{found[1]}="node_modules/{package.rpartition("@")[0]}/{file.expand(place)}"'
    raise ValueError(f"asv's pages load {found[2]}, and SCRIPTS in {__name__} lacks it")


def install(html: Path) -> None:
    """Put the scripts beside asv's pages in the folder `html`, and have them loaded from there."""
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("npm is not installed, and asv's pages need its packages")
    packages = [package for package, _ in SCRIPTS.values()]
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(html)]
    subprocess.run([npm, "install", *options, *packages], check=True, stdout=subprocess.DEVNULL)
    index = html / "index.html"
    index.write_text(_ADDRESS.sub(_local, index.read_text("utf-8")), encoding="utf-8")
