# SPDX-License-Identifier: MIT
"""Which element of a matrix each lane of a warp holds, for the matrix products that kernels use.

From the tables of the PTX ISA, version 9.0: 9.7.14.5.8 (m16n8k16, floating point) and 9.7.14.5.10 (m16n8k32). With
group = lane / 4 and thread = lane % 4, element i of a fragment, low to high, is at (row, column); cuda/emu has no part
in this. fragments.txt has the same from a second source, written by check_fragments.
"""

import math
from operator import mul

from values import bits_of, float_of, half_of, signed

LANES = 32


def _a_f16(group, thread, i):
    row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
    column = thread * 2 + (i & 1) + (0 if i < 4 else 8)
    return row, column


def _b_f16(group, thread, i):
    row = thread * 2 + (i & 1) + (0 if i < 2 else 8)
    return row, group


def _a_s8(group, thread, i):
    row = group if 0 <= i < 4 or 8 <= i < 12 else group + 8
    column = thread * 4 + (i & 3) + (0 if i < 8 else 16)
    return row, column


def _b_s8(group, thread, i):
    row = thread * 4 + (i & 3) + (0 if i < 4 else 16)
    return row, group


def _sums(group, thread, i):
    row = group if i < 2 else group + 8
    return row, thread * 2 + (i & 1)


def _table(place, n):
    """[lane][i]: (row, column)"""
    return [[place(lane // 4, lane % 4, i) for i in range(n)] for lane in range(LANES)]


class Product:
    """One shape: d = a · b + c, a [16][k], b [k][8], with the layout of each fragment."""

    def __init__(self, k, per_register, a, b):
        self.k, self.per_register = k, per_register
        self.layouts = {"a": _table(a, 4 * per_register), "b": _table(b, 2 * per_register), "c": _table(_sums, 4)}

    def gather(self, name, registers, element):
        """The matrix as {(row, column): number}, of registers [register][lane]."""
        per = len(self.layouts[name][0]) // len(registers)
        return {place: element(registers[i // per][lane], i % per)
                for lane, places in enumerate(self.layouts[name]) for i, place in enumerate(places)}

    def multiply(self, a, b, c):
        """Registers d, [4][lane], of registers a [4], b [2] and c [4]."""
        left, right = self.gather("a", a, self.element), self.gather("b", b, self.element)
        before = self.gather("c", c, lambda bits, _: self.sum_of(bits))
        rows = [[left[row, k] for k in range(self.k)] for row in range(16)]
        columns = [[right[k, column] for k in range(self.k)] for column in range(8)]
        after = {(row, column): self.total([before[row, column], *map(mul, rows[row], columns[column])])
                 for row in range(16) for column in range(8)}
        return [[self.bits_of(after[places[i]]) for places in self.layouts["c"]] for i in range(4)]


class Int8(Product):
    total = staticmethod(sum)

    @staticmethod
    def element(register, i):
        return signed(register >> 8 * i & 255, 8)

    @staticmethod
    def sum_of(bits):
        return signed(bits, 32)

    @staticmethod
    def bits_of(total):
        return total & 0xffffffff  # without .satfinite a sum wraps


class Half(Product):
    """PTX leaves the order of additions open, and how sums between are rounded. Here a sum is rounded at its end: what
    is compared bit by bit is to be exact in any order. Products of halves are exact in double."""

    total = staticmethod(math.fsum)

    @staticmethod
    def element(register, i):
        return half_of(register >> 16 * i & 0xffff)

    @staticmethod
    def sum_of(bits):
        return float_of(bits)

    @staticmethod
    def bits_of(total):
        return bits_of(total)


PRODUCTS = {
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32": Int8(32, 4, _a_s8, _b_s8),
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": Half(16, 2, _a_f16, _b_f16),
}


def written(products=None):
    """All layouts as fragments.txt has them: shape, fragment, lane, then row,column of each element."""
    lines = []
    for opcode, product in (products or PRODUCTS).items():
        for name, layout in product.layouts.items():
            for lane, places in enumerate(layout):
                lines.append(" ".join([opcode.split(".")[3], name, str(lane), *(f"{r},{c}" for r, c in places)]))
    return "\n".join(lines) + "\n"
