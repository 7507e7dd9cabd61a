# SPDX-License-Identifier: MIT
"""CURVE keys: the text files in which programs that speak ZeroMQ keep them (`quern keys`, czmq and pyzmq write them).

    metadata
    curve
        public-key = "40 characters of Z85"
        secret-key = "40 characters of Z85"

A pair is two files: NAME, which has the public key alone, and NAME_secret, which has both.
"""

from __future__ import annotations

import os
import re
import stat

from ._errors import BadRequest, NotAllowed

_LENGTH = 40
_MOST_BYTES = 65536
_Z85 = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#")


def is_key(text: str) -> bool:
    """Whether the text is a key: 40 characters of Z85."""
    return len(text) == _LENGTH and _Z85.issuperset(text)


def _key(where: str, name: str, value: str) -> str:
    quote = value[:1]
    if quote in ('"', "'"):
        value, closed, _ = value[1:].partition(quote)
        if not closed:
            raise BadRequest(f"{where}: unterminated quote after {name}")
    else:
        value = (value.split() or [""])[0]
    if len(value) != _LENGTH:
        raise BadRequest(f"{where}: {name} has {len(value)} characters, not {_LENGTH}")
    if not is_key(value):
        raise BadRequest(f"{where}: {name} is not Z85")
    return value


def parse(text: str, path: str) -> dict[str, str]:
    """The keys of a certificate: "public-key", and "secret-key" where it has one. `path` is for the reasons."""
    text = text.removeprefix("\ufeff")
    if is_key(text.strip()):
        return {"public-key": text.strip()}
    found: dict[str, str] = {}
    other_section = False  # neither at the margin nor in "curve": what stands there is none of ours
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        at_margin = stripped == line.rstrip()
        name, assigned, value = re.match(r"([^ \t=]*)[ \t]*(=?)(.*)", stripped, re.S).groups()  # type: ignore[union-attr]
        if at_margin and not assigned:
            other_section = stripped != "curve"
        elif (at_margin or not other_section) and assigned and name in ("public-key", "secret-key"):
            where = f"{path}:{number}"
            if name in found:
                raise BadRequest(f"{where}: duplicate {name}")
            found[name] = _key(where, name, value.strip())
    if found.get("secret-key") == "0" * _LENGTH:  # who saves a pair of which only the public half is known
        del found["secret-key"]
    if "public-key" not in found:
        raise BadRequest(f"{path}: not a CURVE certificate: no public-key")
    return found


def _read(path: str, secret: bool) -> dict[str, str]:
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
        about = os.fstat(file.fileno())  # of what was read, not of what has its name by now
    if len(data) > _MOST_BYTES or b"\0" in data:
        raise BadRequest(f"{path}: not a CURVE certificate")
    found = parse(data.decode("utf-8", "replace"), path)
    others = 0o077 if about.st_uid == os.geteuid() else 0o007
    if secret and "secret-key" in found and about.st_mode & others:
        mode = stat.S_IMODE(about.st_mode)
        raise NotAllowed(f"{path} holds a secret key and others can read it (mode {mode:04o}): chmod 600 {path}")
    return found


def server_key(named: str | os.PathLike[str]) -> str:
    """The public key of a pool: the key itself, or the one in the certificate of that name."""
    path = os.fspath(named)
    if not os.path.exists(path):
        if is_key(path):
            return path
        raise BadRequest(f'server key "{path}" is neither a file nor {_LENGTH} characters of Z85')
    return _read(path, False)["public-key"]


def key_pair(named: str | os.PathLike[str]) -> tuple[str, str]:
    """Public and secret key of a certificate: of the file, or, where that has only the public one, of the file beside
    it whose name has "_secret" added. `NotAllowed` when others can read the secret."""
    path = os.fspath(named)
    try:
        found = _read(path, True)
        if "secret-key" not in found:
            path += "_secret"
            found = _read(path, True)
    except NotAllowed:
        raise
    except OSError as wrong:
        raise BadRequest(f"client key {path}: {wrong.strerror}") from None
    if "secret-key" not in found:
        raise BadRequest(f"{path} has no secret-key")
    return found["public-key"], found["secret-key"]
