# SPDX-License-Identifier: MIT
"""Instructions that compute a lane's register from that lane's registers: {opcode: function of bits, to bits}. The rest
is in machine.py. An opcode that is in neither is unknown."""

import math
import operator
from fractions import Fraction

from values import bits_of, float_of, fused, half_bits_of, half_of, signed

OPERATIONS = {}
_COMPARISONS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
                "ge": operator.ge}


def width_of(kind):
    """Bits of a type, s32 or pred; 0: it is none."""
    if kind == "pred":
        return 1
    return int(kind[1:]) if kind[:1] in "sufb" and kind[1:].isdigit() else 0


def _quotient(a, b):
    """Towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _integers(kind):
    width = width_of(kind)
    mask = (1 << width) - 1

    def read(bits):
        return signed(bits, width) if kind[0] == "s" else bits

    # Plain functions of read numbers, whose result is cut to the width.
    def cut(function):
        return lambda *sources: function(*map(read, sources)) & mask

    OPERATIONS.update({
        f"add.{kind}": cut(lambda a, b: a + b),
        f"sub.{kind}": cut(lambda a, b: a - b),
        f"mul.lo.{kind}": cut(lambda a, b: a * b),
        f"mad.lo.{kind}": cut(lambda a, b, c: a * b + c),
        f"min.{kind}": cut(min),
        f"max.{kind}": cut(max),
        f"neg.{kind}": cut(lambda a: -a),
        f"abs.{kind}": cut(abs),
        f"div.{kind}": cut(_quotient),
        f"rem.{kind}": cut(lambda a, b: a - b * _quotient(a, b)),
        f"shr.{kind}": lambda a, n: read(a) >> min(n, width) & mask,
    })
    wide = (1 << 2 * width) - 1
    OPERATIONS[f"mul.wide.{kind}"] = lambda a, b: read(a) * read(b) & wide
    OPERATIONS[f"mad.wide.{kind}"] = lambda a, b, c: read(a) * read(b) + c & wide
    for name, holds in _COMPARISONS.items():
        OPERATIONS[f"setp.{name}.{kind}"] = lambda a, b, holds=holds: int(holds(read(a), read(b)))
    for other in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        to = (1 << width_of(other)) - 1
        source = (1 << width) - 1
        OPERATIONS[f"cvt.{other}.{kind}"] = lambda a, to=to, source=source: read(a & source) & to


def _bits(kind):
    width = width_of(kind)
    mask = (1 << width) - 1
    OPERATIONS.update({
        f"and.{kind}": lambda a, b: a & b,
        f"or.{kind}": lambda a, b: a | b,
        f"xor.{kind}": lambda a, b: a ^ b,
        f"not.{kind}": lambda a: ~a & mask,
    })
    if width > 1:
        OPERATIONS[f"shl.{kind}"] = lambda a, n: a << min(n, width) & mask
        OPERATIONS[f"setp.eq.{kind}"] = lambda a, b: int(a == b)
        OPERATIONS[f"setp.ne.{kind}"] = lambda a, b: int(a != b)


for _kind in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
    _integers(_kind)
for _kind in ("pred", "b16", "b32", "b64"):
    _bits(_kind)
for _kind in ("b16", "b32", "b64", "u16", "s16", "u32", "s32", "u64", "s64", "f32"):
    OPERATIONS[f"selp.{_kind}"] = lambda a, b, chosen: a if chosen else b


def _floats(function):
    return lambda *sources: bits_of(function(*map(float_of, sources)))


def _larger(a, b):
    """max.f32: of a number and a NaN, the number."""
    if a != a or b != b:
        return b if a != a else a
    return a if a > b else b


OPERATIONS.update({
    # Two floats' sum or product is rounded in double first, which changes nothing: it has more than twice the bits.
    "add.f32": _floats(lambda a, b: a + b),
    "add.rn.f32": _floats(lambda a, b: a + b),
    "sub.f32": _floats(lambda a, b: a - b),
    "mul.f32": _floats(lambda a, b: a * b),
    "mul.rn.f32": _floats(lambda a, b: a * b),
    "fma.rn.f32": _floats(fused),
    "max.f32": _floats(_larger),
    "neg.f32": lambda a: a ^ 0x80000000,
    "abs.f32": lambda a: a & 0x7fffffff,
})
for _name, _holds in _COMPARISONS.items():
    OPERATIONS[f"setp.{_name}.f32"] = lambda a, b, holds=_holds: int(
        (a_ := float_of(a)) == a_ and (b_ := float_of(b)) == b_ and holds(a_, b_))
    OPERATIONS[f"setp.{_name}u.f32"] = lambda a, b, holds=_holds: int(
        (a_ := float_of(a)) != a_ or (b_ := float_of(b)) != b_ or holds(a_, b_))
OPERATIONS["setp.nan.f32"] = lambda a, b: int(float_of(a) != float_of(a) or float_of(b) != float_of(b))


def _nearest(bits):
    """cvt.rni.s32.f32: ties to even; beyond the range the nearest that there is, of NaN 0."""
    number = float_of(bits)
    if number != number:
        return 0
    return int(max(-2.0 ** 31, min(2.0 ** 31 - 1, number)).__round__()) & 0xffffffff


def _quotient_of_floats(a, b):
    """Rounded in double first, which changes nothing."""
    if b:
        return a / b
    return math.nan if not a or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _power_of_two(exponent):
    """ex2.approx.ftz.f32, here the nearest float; the hardware may be an ulp or two off. Subnormals are zeros."""
    if abs(exponent) < 2.0 ** -126:
        exponent = 0.0
    if exponent == math.inf or exponent >= 128:
        return math.inf
    return 2.0 ** exponent if exponent >= -126 or exponent != exponent else 0.0


def _fused_down(a, b, c):
    """fma.rm.f32: rounded towards −∞."""
    x, y, z = map(float_of, (a, b, c))
    if not all(map(math.isfinite, (x, y, z))):
        return bits_of(fused(x, y, z))
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    bits = bits_of(fused(x, y, z))
    if math.isfinite(float_of(bits)) and float_of(bits) > exact:
        return bits - 1 if 0 < bits < 0x80000000 else 0x80000001 if not bits else bits + 1
    return bits


def _halves(function):
    """Each of two halves; double holds their sum and their product without rounding."""
    def both(a, b):
        low, high = (half_bits_of(function(half_of(a >> at & 0xffff), half_of(b >> at & 0xffff))) for at in (0, 16))
        return low | high << 16
    return both


def _dp4a(a, b, c):
    return c + sum(signed(a >> at & 255, 8) * signed(b >> at & 255, 8) for at in (0, 8, 16, 24)) & 0xffffffff


def _prmt(a, b, selector):
    """PTX ISA 9.0, 9.7.9.7: nibble i chooses one of eight bytes, a's first; its top bit asks for the sign of it."""
    both, result = a | b << 32, 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = both >> 8 * (nibble & 7) & 255
        if nibble & 8:
            byte = 255 * (byte >> 7)
        result |= byte << 8 * i
    return result


def _bfi(width):
    """Where `at` and `n` reach beyond the top, what is beyond is left out."""
    def insert(a, b, at, n):
        mask = (1 << n) - 1 << at & (1 << width) - 1
        return b & ~mask | a << at & mask
    return insert


OPERATIONS.update({
    "cvt.rni.s32.f32": _nearest,
    "cvt.sat.f32.f32": _floats(lambda a: 0.0 if a != a else min(max(a, 0.0), 1.0)),
    "div.rn.f32": _floats(_quotient_of_floats),
    "ex2.approx.ftz.f32": _floats(_power_of_two),
    "fma.rm.f32": _fused_down,
    "cvt.rn.f32.s32": lambda a: bits_of(float(signed(a, 32))),
    "cvt.rn.f32.u32": lambda a: bits_of(float(a)),
    "cvt.rn.f32.s16": lambda a: bits_of(float(signed(a, 16))),
    "cvt.rn.f32.u16": lambda a: bits_of(float(a)),
    "cvt.f32.f16": lambda a: bits_of(half_of(a)),
    "cvt.rn.f16.f32": lambda a: half_bits_of(float_of(a)),
    "add.rn.f16x2": _halves(operator.add),
    "mul.rn.f16x2": _halves(operator.mul),
    "dp4a.s32.s32": _dp4a,
    "prmt.b32": _prmt,
    "bfi.b32": _bfi(32),
    "bfi.b64": _bfi(64),
    # A generic address of global memory is the global address.
    "cvta.to.global.u64": lambda a: a,
})
