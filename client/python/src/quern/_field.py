# SPDX-License-Identifier: MIT
"""What a table of the protocol is made of: see proto/fields.h, whose twin this is."""

from __future__ import annotations

from dataclasses import dataclass, field

# Types of fields. INT is every integer, whose bounds say the rest; ID is a byte string of 16, FLOATS one of float 32,
# little-endian, BIN any other. A HISTOGRAM is its sum, then its counts, in whole numbers.
(
    BOOL, INT, REAL, ENUM, ID, FLOATS, BIN, TEXT, NAME, EPOCH, RANGE, TEXTS, IDS, BINS, PROMPT, BIASES, LOGPROBS, MAP, MAPS, HISTOGRAM
) = range(20)  # fmt: skip


@dataclass(frozen=True)
class Field:
    """One key of a message."""

    key: str
    type: int
    required: bool = False
    always: bool = False  # written even when it is as by default, so that no receiver puts its own default there
    optional: bool = False  # None when it is not there
    low: int = 0
    high: int = 0  # of an integer; most bytes of a text; most items of a list
    item_high: int = 0  # most bytes of an item
    real_low: float = 0
    real_high: float = 0
    initial: float = 0  # what a number, or a flag, that is left out becomes
    help: str = ""
    names: tuple[str, ...] = ()
    table: Table | None = None

    def default(self) -> object:
        """What the field is when it is left out. A list is a new one."""
        if self.optional or self.type in (ID, MAP):
            return None
        if self.type == BOOL:
            return bool(self.initial)
        if self.type == INT:
            return int(self.initial)
        if self.type == REAL:
            return float(self.initial)
        if self.type == ENUM:
            return self.names[0]
        if self.type in (TEXT, NAME):
            return ""
        if self.type in (FLOATS, BIN):
            return b""
        return (0, 0) if self.type in (EPOCH, RANGE) else []


@dataclass(frozen=True)
class Table:
    """The keys of a message, or of a map inside one, in the order in which they are written."""

    fields: tuple[Field, ...]
    max_bytes: int = 0
    by_key: dict[str, Field] = field(default_factory=dict)


def table(*fields: Field, max_bytes: int = 0) -> Table:
    """A table of these fields."""
    return Table(fields, max_bytes, {each.key: each for each in fields})
