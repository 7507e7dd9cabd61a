# SPDX-License-Identifier: MIT
"""For checks that need packages from PyPI: they go on in a virtual environment of their own."""

import os
import pathlib
import subprocess
import sys
import venv


def go_on_in(folder, *packages):
    """Returns inside `folder`, a virtual environment with these packages: makes it and starts the script again if it
    does not run there yet. Exit status 77 if the packages cannot be fetched."""
    if pathlib.Path(sys.prefix) == folder:
        return
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    if subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=False).returncode:
        print(f"{pathlib.Path(sys.argv[0]).name}: {', '.join(packages)} cannot be installed")
        sys.exit(77)
    os.execv(python, [str(python), *sys.argv])
