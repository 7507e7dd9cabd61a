# SPDX-License-Identifier: MIT
"""Numbers as registers hold them: bits, read and rounded as PTX says. Nothing here knows of instructions."""

import math
import struct

_FLOAT, _WORD = struct.Struct("<f"), struct.Struct("<I")
_HALF, _SHORT = struct.Struct("<e"), struct.Struct("<H")
NAN, HALF_NAN = 0x7fffffff, 0x7fff  # the canonical ones of PTX


def signed(bits, width):
    return bits - (1 << width) if bits >> (width - 1) & 1 else bits


def float_of(bits):
    return _FLOAT.unpack(_WORD.pack(bits))[0]


def bits_of(number):
    """Of the nearest float, ties to even."""
    if number != number:
        return NAN
    try:
        return _WORD.unpack(_FLOAT.pack(number))[0]
    except OverflowError:
        return 0x7f800000 | (number < 0) << 31


def half_of(bits):
    return _HALF.unpack(_SHORT.pack(bits))[0]


def half_bits_of(number):
    """Of the nearest binary16, ties to even."""
    if number != number:
        return HALF_NAN
    try:
        return _SHORT.unpack(_HALF.pack(number))[0]
    except OverflowError:
        return 0x7c00 | (number < 0) << 15


def fused(a, b, c):
    """a · b + c of floats, rounded once: the product is exact in double; the sum is rounded to odd there, after which
    rounding to float gives what one rounding gives."""
    product = a * b
    total = product + c
    if not math.isfinite(total):
        return total
    part = total - product
    error = (product - (total - part)) + (c - part)
    if error and not struct.unpack("<Q", struct.pack("<d", total))[0] & 1:
        total = math.nextafter(total, math.copysign(math.inf, error))
    return total
