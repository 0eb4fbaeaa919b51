"""Git for tests: by nobody in particular, whatever the settings of the machine."""

import subprocess
from pathlib import Path

NOBODY = ("user.name=tester", "user.email=tester@example.com", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it says, stripped."""
    settings = [word for setting in NOBODY for word in ("-c", setting)]
    command = ["git", "-C", str(folder), *settings, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
