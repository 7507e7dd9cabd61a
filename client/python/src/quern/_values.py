# SPDX-License-Identifier: MIT
"""Checks of single values, shared by reading and writing: what is refused on the way in is refused on the way out too.

The texts leave out the key: whoever walks the table puts it in front.
"""

from __future__ import annotations

import math
from typing import Any

from . import _field as f
from . import _tables as tables
from ._field import Field

_LARGEST_ID = 2**31 - 1


class Malformed(ValueError):
    """Bytes that are no message, or a message that may not be sent: the text names the key."""


class Pairs(list):  # type: ignore[type-arg]
    """A map as pairs: a key may come twice, and an array is none."""


def check_number(field: Field, value: int) -> None:
    if not field.low <= value <= field.high:
        raise Malformed(f"{value} is out of range {field.low}..{field.high}")


def check_real(field: Field, value: float) -> None:
    if not field.real_low <= value <= field.real_high:  # NaN fails too
        raise Malformed(f"{value:g} is out of range {field.real_low:g}..{field.real_high:g}")


def check_count(n: int, most: int) -> None:
    if n > most:
        raise Malformed(f"{n} items; at most {most} are allowed")


def check_text(text: str, most: int, name: bool) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError as wrong:
        before = len(text[: wrong.start].encode("utf-8", "surrogateescape"))
        raise Malformed(f"not UTF-8 at byte {before}") from None
    if len(data) > most:
        raise Malformed(f"{len(data)} bytes; at most {most} are allowed")
    if name:
        for at, byte in enumerate(data):
            if byte < 0x20 or byte == 0x7F:
                raise Malformed(f"control character at byte {at}")


def is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check_id(value: object) -> int:
    if not is_integer(value) or not 0 <= value <= _LARGEST_ID:  # type: ignore[operator]
        raise Malformed("expected token ids (integers from 0 to 2147483647)")
    return value  # type: ignore[return-value]


def check_list(value: object, what: str, most: int) -> list[Any]:
    if not isinstance(value, (list, tuple)) or isinstance(value, Pairs):
        raise Malformed(f"expected {what}")
    check_count(len(value), most)
    return value  # type: ignore[return-value]


def check_pair(value: object, what: str) -> tuple[int, int]:
    if not isinstance(value, (list, tuple)) or isinstance(value, Pairs) or len(value) != 2:
        raise Malformed(f"expected {what}")
    a, b = value
    if not is_integer(a) or not is_integer(b) or not 0 <= a < 2**64 or not 0 <= b < 2**32:
        raise Malformed(f"expected {what}")
    return a, b


def check_id_and_real(value: object, what: str) -> tuple[int, float]:
    if not isinstance(value, (list, tuple)) or isinstance(value, Pairs) or len(value) != 2:
        raise Malformed(f"expected {what}")
    token = check_id(value[0])
    if not is_integer(value[1]) and not isinstance(value[1], float):
        raise Malformed(f"expected {what}")
    return token, float(value[1])


def check_ids(value: list[Any]) -> list[int]:
    # The usual case at the speed of C: nothing but integers, none out of range.
    if value and not (set(map(type, value)) == {int} and min(value) >= 0 and max(value) <= _LARGEST_ID):
        for each in value:
            check_id(each)
    return value


def check_strings(field: Field, value: object) -> list[Any]:
    kind, what = (str, "an array of texts") if field.type == f.TEXTS else (bytes, "an array of byte strings")
    items = check_list(value, what, field.high)
    for i, item in enumerate(items):
        if not isinstance(item, kind):
            raise Malformed(f"expected {what}")
        try:
            if len(item) < field.low:
                raise Malformed("is empty")
            if isinstance(item, str):
                check_text(item, field.item_high, False)
            elif len(item) > field.item_high:
                raise Malformed(f"{len(item)} bytes; at most {field.item_high} are allowed")
        except Malformed as wrong:
            raise Malformed(f"item {i}: {wrong}") from None
    return items


def check_biases(field: Field, value: object) -> list[tuple[int, float]]:
    what = "pairs of id and bias"
    pairs = []
    for i, item in enumerate(check_list(value, what, field.high)):
        try:
            pair = check_id_and_real(item, what)
            if pair[1] != -math.inf:
                check_real(field, pair[1])
        except Malformed as wrong:
            raise Malformed(f"item {i}: {wrong}") from None
        pairs.append(pair)
    return pairs


def check_logprobs(field: Field, value: object) -> list[list[tuple[int, float]]]:
    rows: list[list[tuple[int, float]]] = []
    for row in check_list(value, "an array for each id", tables.MAX_FRAME_IDS):
        items = check_list(row, "an array for each id", field.high)
        if not items or (rows and len(items) != len(rows[0])):
            raise Malformed("expected as many entries for each id")
        entries = [check_id_and_real(item, "pairs of id and logarithm") for item in items]
        if any(math.isnan(logarithm) for _, logarithm in entries):
            raise Malformed("a log probability that is not a number")
        rows.append(entries)
    return rows


def check_histogram(field: Field, value: object) -> list[int]:
    numbers = check_list(value, "the sum and the counts of a histogram", field.high)
    if len(numbers) != field.high:
        raise Malformed(f"{len(numbers)} numbers, not {field.high}")
    for i, number in enumerate(numbers):
        if not is_integer(number) or number < 0:
            raise Malformed(f"item {i}: expected an integer")
    return numbers


def check_scalar(field: Field, value: Any) -> Any:
    kind = field.type
    if kind == f.BOOL:
        if not isinstance(value, bool):
            raise Malformed("expected true or false")
    elif kind == f.INT:
        if not is_integer(value):
            raise Malformed("expected an integer")
        check_number(field, value)
    elif kind == f.REAL:
        if not is_integer(value) and not isinstance(value, float):
            raise Malformed("expected a number")
        value = float(value)
        check_real(field, value)
    elif kind == f.ID:
        if not isinstance(value, bytes) or len(value) != 16:
            raise Malformed("expected a byte string of 16 bytes")
    elif kind == f.FLOATS:
        if not isinstance(value, bytes):
            raise Malformed("expected a byte string")
        if len(value) % 4:
            raise Malformed(f"{len(value)} bytes are not a whole number of 32-bit floats")
        check_count(len(value) // 4, field.high)
    elif kind == f.BIN:
        if not isinstance(value, bytes):
            raise Malformed("expected a byte string")
        if len(value) < field.low:
            raise Malformed("is empty")
        if len(value) > field.high:
            raise Malformed(f"{len(value)} bytes; at most {field.high} are allowed")
    else:
        if not isinstance(value, str):
            raise Malformed("expected a text")
        if kind == f.ENUM:
            if value not in field.names:
                raise Malformed(f'unknown value "{value[:40]}"')
        else:
            check_text(value, field.high, kind == f.NAME)
    return value
