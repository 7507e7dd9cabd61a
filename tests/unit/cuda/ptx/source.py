# SPDX-License-Identifier: MIT
"""Reads what nvcc writes: the kernels of a PTX text, each a list of instructions."""

import pathlib
import re
from dataclasses import dataclass, field


SIMT_CUDA = pathlib.Path(__file__).resolve().parents[4] / "cuda/device/simt_cuda.h"


class Unknown(Exception):
    """What this interpreter does not know, by name."""


@dataclass
class Instruction:
    guard: str  # a predicate's register, or ""
    negated: bool
    opcode: str
    operands: list
    text: str


@dataclass
class Kernel:
    name: str
    parameters: list  # (symbol, bytes)
    instructions: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)  # of the instruction after it
    widths: dict = field(default_factory=dict)  # register or prefix of registers: bits
    shared: dict = field(default_factory=dict)  # symbol: bytes; 0: the launch says how many


_STATEMENT = re.compile(r"\s*(?:(?P<open>\{)|(?P<close>\})|(?P<label>[$\w]+)\s*:(?!:)"
                        r"|(?P<statement>[^;{}]*(?:\{[^{}]*\}[^;{}]*)*);)")
_SHARED = re.compile(r"\.shared\s+(?:\.align\s+\d+\s+)?\.([bsuf]\d+)\s+([$\w]+)(?:\[(\d*)\])?")


def ptx_of(path):
    """The text of a .ptx file, or of an object that nvcc made with --no-compress and code=compute_…."""
    data = pathlib.Path(path).read_bytes()
    start = data.find(b"\n.version ")  # at a line's beginning: tables of line numbers have it too
    if start < 0:
        raise Unknown(f"{path}: no PTX in it")
    end = data.find(b"\0", start)
    text = data[start:end if end >= 0 else None].decode()
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    return re.sub(r"(?m)^\s*\.(?:loc|file)\b.*$", "", text)


def written_by_hand():
    """Opcodes of the assembly in simt_cuda.h."""
    return set(re.findall(r'\basm(?: volatile)?\(\s*"([a-z][\w.:]*)', SIMT_CUDA.read_text()))


def entries(text):
    """{name: (parameters, body)} of each kernel."""
    found = {}
    for match in re.finditer(r"\.(entry|func)\s+(?:\([^)]*\)\s*)?([$\w]+)\s*\(([^)]*)\)[^{;]*\{", text):
        at, depth = match.end(), 1
        while depth:
            brace = re.compile(r"[{}]").search(text, at)
            depth += 1 if brace.group() == "{" else -1
            at = brace.end()
        found[match.group(2)] = (match.group(3), text[match.end():at - 1])
    return found


def split_operands(text):
    """At commas outside braces and brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def instruction(text):
    """Of a statement, without its semicolon."""
    match = re.fullmatch(r"(?:@(!?)([%$\w]+)\s+)?([a-z][\w.:]*)\s*(.*)", text.strip(), re.S)
    if not match:
        raise Unknown(f"statement {text.strip()!r}")
    negated, guard, opcode, rest = match.groups()
    return Instruction(guard or "", bool(negated), opcode, split_operands(rest), " ".join(text.split()))


def _declare(kernel, scope, text):
    kind, names = re.fullmatch(r"\.reg\s+\.(\w+)\s+(.*)", text, re.S).groups()
    width = 1 if kind == "pred" else int(kind[1:])
    for name in split_operands(names):
        name = name.split("<")[0]
        if not name.startswith("%") and scope is not None:  # of inline assembly: known inside its braces alone
            scope[name] = f"{name}#{id(scope)}"
            name = scope[name]
        kernel.widths[name] = width


def _sizes(text):
    sizes = []
    for part in split_operands(text):
        match = re.search(r"\.([bsuf])(\d+)\s+(?:\.ptr\b.*\s)?([$\w]+)(?:\[(\d+)\])?$", part, re.S)
        sizes.append((match.group(3), int(match.group(2)) // 8 * int(match.group(4) or 1)))
    return sizes


def _add_shared(kernel, text):
    for kind, name, n in _SHARED.findall(text):
        kernel.shared[name] = int(kind[1:]) // 8 * int(n or 0)


def kernel_of(text, name, there=None):
    """The kernel of that name, or the one that has `name` in its own; there: entries(text), where it is known."""
    there = there or entries(text)
    found = {full: parts for full, parts in there.items() if full == name or name in full and name not in there}
    if len(found) != 1:
        raise Unknown(f"{len(found)} kernels with {name} in their names")
    (full, (parameters, body)), = found.items()
    kernel = Kernel(full, _sizes(parameters))
    _add_shared(kernel, text[:text.index(".entry")])
    scopes, at, end = [], 0, len(body.rstrip())
    while at < end:
        match = _STATEMENT.match(body, at)
        if not match:
            raise Unknown(f"text {body[at:at + 40]!r}")
        at = match.end()
        if match.group("open"):
            scopes.append({})
        elif match.group("close"):
            scopes.pop()
        elif match.group("label"):
            kernel.labels[match.group("label")] = len(kernel.instructions)
        else:
            statement = match.group("statement").strip()
            if statement.startswith(".reg"):
                _declare(kernel, scopes[-1] if scopes else None, statement)
            elif statement.startswith(".shared"):
                _add_shared(kernel, statement)
            elif statement and not statement.startswith("."):
                for scope in reversed(scopes):
                    for local, unique in scope.items():
                        statement = re.sub(rf"(?<![%$\w.]){re.escape(local)}(?![\w.])", unique, statement)
                kernel.instructions.append(instruction(statement))
    return kernel
