# SPDX-License-Identifier: MIT
"""Where a pool is, and whether that place may be trusted."""

from __future__ import annotations

import os
import pathlib
import stat

from ._errors import BadRequest, NotAllowed, Unreachable


def default_folder() -> str:
    """The run directory that `quern serve` takes when it is told none."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return f"{runtime}/quern" if runtime.startswith("/") else f"/tmp/quern-{os.getuid()}"


def _check_folder(folder: str) -> None:
    """Who can write there can pass for the pool: it must be ours, and nobody else's."""
    try:
        about = os.lstat(folder)
    except FileNotFoundError:
        raise Unreachable(f"no pool is running in {folder} (no such directory)") from None
    except OSError as wrong:
        raise Unreachable(f"run directory {folder}: {wrong.strerror}") from None
    if not stat.S_ISDIR(about.st_mode):
        raise NotAllowed(f"run directory {folder} is not a directory")
    if about.st_uid != os.getuid():
        raise NotAllowed(f"run directory {folder} belongs to user {about.st_uid}, not to the current user ({os.getuid()})")
    if about.st_mode & 0o777 != 0o700:
        raise NotAllowed(f"run directory {folder} has mode {about.st_mode & 0o777:04o}; 0700 is required")


def endpoint_of(wanted: str | os.PathLike[str] | None) -> str:
    """The frontend of the pool that the caller named: "ipc://PATH", "tcp://HOST:PORT", a run directory, or None for
    the default one. `Unreachable` when no pool runs there, `NotAllowed` when the directory may not be trusted."""
    named = default_folder() if wanted is None else os.fspath(wanted)
    if "://" in named:
        if not named.startswith(("ipc://", "tcp://")):
            raise BadRequest(f"{named} is not an endpoint: ipc://PATH or tcp://HOST:PORT")
        return named
    if isinstance(wanted, str) and not wanted.startswith(("/", ".")) and not os.path.exists(wanted):
        raise BadRequest(f"{wanted!r} is not an endpoint: ipc://PATH, tcp://HOST:PORT, or a run directory")
    if wanted is not None:
        named = os.path.realpath(named) if os.path.islink(named) else os.path.abspath(named)
    _check_folder(named)
    frontend = pathlib.Path(named, "frontend")
    if not frontend.exists():
        raise Unreachable(f"no pool is running in {named} ({frontend} does not exist)")
    return f"ipc://{frontend}"
