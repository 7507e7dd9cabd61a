# SPDX-License-Identifier: MIT
"""The rules of layers.txt, for the checks of includes and of calls.

A module is named by its path without the ending: broker/wire/zmtp is zmtp.c and zmtp.h. A room is a folder."""

import os
import pathlib
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]
ENDINGS = (".c", ".h", ".cc", ".cu")


class Rules:
    def __init__(self):
        self.uses, self.place, self.together, self.headers, self.calls_up, self.provided, self.crowds = {}, {}, {}, {}, set(), set(), set()
        self.public = {}
        for number, line in enumerate((TOP / "scripts/check/layers.txt").read_text().splitlines(), 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            words, _, right = line.partition(":")
            kind, name = words.split()
            right = right.split()
            if kind == "room":
                self.uses[name] = set(right)
            elif kind == "order":
                self.place[name] = {module: i for i, module in enumerate(right)}
            elif kind == "together":
                for module in right:
                    self.together.setdefault(f"{name}/{module}", set()).update(f"{name}/{other}" for other in right)
            elif kind == "calls":
                self.calls_up.update((name, other) for other in right)
            elif kind == "provides":
                self.provided.update((name, other) for other in right)
            elif kind == "public":
                self.public[name] = tuple(right)
            elif kind == "crowd":
                self.crowds.add(name)
            elif kind == "header":
                self.headers[name] = set(right)
            else:
                raise SystemExit(f"layers.txt:{number}: \"{kind}\" is unknown: expected one of room, order, together, calls, provides, public, crowd, header")

    def room_of(self, path):
        """The room of a file; of the tests, which are one room, it is the folder at the top."""
        folder = os.path.dirname(path)
        while folder and folder not in self.uses:
            folder = os.path.dirname(folder) if folder.startswith("tests/") else ""
        return folder

    def publishes(self, user, used, function):
        """Whether the function is public, of a room that the user may use."""
        return any(used.startswith(room + "/") and function.startswith(prefixes) and room in self.uses.get(self.room_of(user), ())
                   for room, prefixes in self.public.items())

    def breach(self, user, used):
        """What is wrong with one module's use of another; both are paths of files."""
        a, b = self.room_of(user), self.room_of(used)
        if not a or not b:
            return f"{os.path.dirname(used if a else user)} is not a room of layers.txt"
        if a == "tests":
            return None
        if a != b:
            return None if b in self.uses[a] else f"{a} may not use {b}"
        first, second = os.path.splitext(user)[0], os.path.splitext(used)[0]
        if a not in self.place or second in self.together.get(first, ()):
            return None
        if first == second:
            return None
        places = []
        for path, module in ((user, first), (used, second)):
            name = path.removeprefix(a + "/")
            places.append(self.place[a].get(name, self.place[a].get(os.path.splitext(name)[0])))
            if places[-1] is None:
                return f"{module} has no place in the order of {a}"
        return f"{used} stands above it in the order of {a}" if places[1] > places[0] else None


def sources():
    """All C, C++ and CUDA files of the repository, in order."""
    listed = subprocess.run(["find", ".", "-path", "./.git", "-prune", "-o", "-path", "./build*", "-prune", "-o", "-type", "f", "-print"],
                            cwd=TOP, capture_output=True, text=True, check=True).stdout
    return sorted(path[2:] for path in listed.splitlines() if path.endswith(ENDINGS))
