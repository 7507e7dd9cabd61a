# SPDX-License-Identifier: MIT
"""For checks that need packages from PyPI: continues them in a separate virtual environment."""

import os
import pathlib
import subprocess
import sys
import venv


def make(folder, *packages):
    """The interpreter of `folder`, a virtual environment with these packages (options of pip may precede them); None if
    they cannot be fetched."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    failed = subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=False).returncode
    return None if failed else python


def go_on_in(folder, *packages):
    """Returns inside `folder`, a virtual environment with these packages: makes it and starts the script again if it
    does not run there yet. Exit status 77 if the packages cannot be fetched."""
    if pathlib.Path(sys.prefix) == folder:
        return
    python = make(folder, *packages)
    if not python:
        print(f"{pathlib.Path(sys.argv[0]).name}: {', '.join(packages)} cannot be installed")
        sys.exit(77)
    os.execv(python, [str(python), *sys.argv])
