#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What nvcc makes of the primitives of simt.h, of a tile of products and of attention, executed: results equal a plain
reference, and what the emulator computes.

    test_ptx.py [--ran FILE] ON_EMULATOR PRIMITIVES TILES ATTENTION [TEST…]

The last three are objects with PTX. Without them, where there is no nvcc, the exit status is 77: skipped.
FILE gets the opcodes that were executed, for cuda/tools/opcodes.
"""

import pathlib
import random
import re
import struct
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True

from fragments import LANES, PRODUCTS, written
from machine import Fault, Machine
from source import SIMT_CUDA, Unknown, kernel_of, ptx_of, written_by_hand
from values import HALF_NAN, NAN, bits_of, float_of, half_bits_of, half_of, signed

IN, OUT = 0x10000, 0x80000
MASK = 0xffffffff
RAN = set()
UNWRITTEN = 0x7b7b7b7b
INT8, F16 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


class Emulator:
    """on_emulator.c, asked line by line."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("the emulator ended")
        return line.split()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait() == 0


def words_of(content):
    return list(struct.unpack(f"<{len(content) // 4}I", content))


def bytes_of(words):
    return struct.pack(f"<{len(words)}I", *words)


def without_nan(kind, word):
    """NaNs are compared as NaNs, whatever else their bits say."""
    if kind == "f32" and float_of(word) != float_of(word):
        return NAN
    if kind == "f16" and half_of(word) != half_of(word):
        return HALF_NAN
    if kind == "f16x2":
        return without_nan("f16", word & 0xffff) | without_nan("f16", word >> 16) << 16
    return word


def swapped(opcode, name, axis):
    """The products with rows (axis 0) or columns 2 and 5 of one layout in each other's place."""
    product = object.__new__(type(PRODUCTS[opcode]))
    product.__dict__.update(PRODUCTS[opcode].__dict__)
    swap = {2: 5, 5: 2}
    product.layouts = dict(product.layouts, **{name: [
        [tuple(swap.get(x, x) if i == axis else x for i, x in enumerate(place)) for place in places]
        for places in product.layouts[name]]})
    return {**PRODUCTS, opcode: product}


class Executed(unittest.TestCase):
    maxDiff = 2000
    emulator = primitives = tiles = attention = None

    def setUp(self):
        self.random = random.Random(20)

    def words(self, n):
        return [self.random.getrandbits(32) for _ in range(n)]

    def interpret(self, name, n_threads, given, out, products=None):
        machine = Machine(kernel_of(self.primitives, name), products)
        memory = bytearray(bytes_of(out))
        machine.memory.add(IN, bytearray(bytes_of(given)))
        machine.memory.add(OUT, memory)
        machine.launch((1, 1, 1), (n_threads, 1, 1), 1024, [IN.to_bytes(8, "little"), OUT.to_bytes(8, "little")])
        RAN.update(machine.ran)
        return words_of(bytes(memory))

    def emulate(self, name, n_threads, given, out):
        self.emulator.ask("run", name, n_threads, bytes_of(given).hex(), bytes_of(out).hex())
        return words_of(bytes.fromhex(self.emulator.answer()[1]))

    def check(self, name, given, expected, kind="u32", n_threads=LANES, out=None):
        """expected: all words of out; None: not compared"""
        out = out or [UNWRITTEN] * len(expected)
        interpreted = self.interpret(name, n_threads, given, out)
        emulated = self.emulate(name, n_threads, given, out)
        for who, got in (("interpreted", interpreted), ("emulated", emulated)):
            self.assertEqual([without_nan(kind, word) for word in got],
                             [without_nan(kind, word) for word in expected], f"{name}, {who}")


# Floats that round, end and overflow somewhere.
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.5, 1.5, 2.5, -2.5, 3.4999998, 65504.0, 65519.0, 65520.0, 1e-8, 6e-8, 6.1e-5, -70000.0,
          1e30, -1e38, 1e-40, 2147483520.0, 8388609.0, -8388608.5, 0.1, 1 / 3, 1024.5, 1025.5, 127.5, -128.5,
          2.0 ** -24, 2.0 ** -25, 3e-39, 7.0]


class Primitives(Executed):
    def test_int8_products_are_those_of_the_matrices(self):
        a = [[self.random.randrange(-128, 128) for _ in range(32)] for _ in range(16)]
        b = [[self.random.randrange(-128, 128) for _ in range(32)] for _ in range(8)]
        a[3], b[5] = [-128] * 32, [-128] * 32
        c = self.words(128)
        c[0], c[3 * 8 + 5] = 0x7fffffff, 0x7fffffff  # a sum that wraps
        given = words_of(bytes(value & 255 for row in a + b for value in row)) + c
        expected = [c[row * 8 + column] + sum(x * y for x, y in zip(a[row], b[column])) & MASK
                    for row in range(16) for column in range(8)]
        self.check("product_s8", given, expected)

    def halves(self, n, most):
        return [half_bits_of(self.random.randrange(-most, most) / 8) for _ in range(n)]

    def test_f16_products_are_those_of_the_matrices(self):
        a, b = self.halves(16 * 16, 512), self.halves(8 * 16, 512)  # every sum is a small multiple of 1 / 64
        c = [bits_of(self.random.randrange(-1000, 1000) / 4) for _ in range(128)]
        given = words_of(struct.pack("<384H", *a, *b)) + c
        expected = [bits_of(float_of(c[row * 8 + column]) +
                            sum(half_of(a[row * 16 + k]) * half_of(b[column * 16 + k]) for k in range(16)))
                    for row in range(16) for column in range(8)]
        self.check("product_f16", given, expected, "f32")

    def test_registers_hold_what_the_emulator_thinks_they_hold(self):
        given = self.words(10 * LANES)
        self.assertEqual(self.interpret("registers_s8", LANES, given, [0] * 128),
                         self.emulate("registers_s8", LANES, given, [0] * 128))
        given = words_of(struct.pack("<384H", *self.halves(384, 512)))
        given += [bits_of(self.random.randrange(-1000, 1000) / 4) for _ in range(128)]
        self.assertEqual(self.interpret("registers_f16", LANES, given, [0] * 128),
                         self.emulate("registers_f16", LANES, given, [0] * 128))

    def test_two_swapped_rows_of_any_layout_are_seen(self):
        for kernel, opcode in (("registers_s8", INT8), ("registers_f16", F16)):
            given = self.words(10 * LANES) if kernel == "registers_s8" else words_of(
                struct.pack("<384H", *self.halves(384, 512))) + [bits_of(float(i)) for i in range(128)]
            emulated = self.emulate(kernel, LANES, given, [0] * 128)
            for name, axis in (("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0), ("c", 1)):
                with self.subTest(kernel, layout=name, axis=axis):
                    interpreted = self.interpret(kernel, LANES, given, [0] * 128, swapped(opcode, name, axis))
                    self.assertNotEqual(interpreted, emulated)

    def test_dot_products_of_four(self):
        a, b = self.words(LANES), self.words(LANES)
        c = [self.random.randrange(-2 ** 30, 2 ** 30) & MASK for _ in range(LANES)]
        a[0] = b[0] = 0x80808080
        c[0] = 0x7fffffff - 4 * 128 * 128  # the largest sum; beyond it simt.h says nothing
        expected = [z + sum(signed(x >> at & 255, 8) * signed(y >> at & 255, 8) for at in (0, 8, 16, 24)) & MASK
                    for x, y, z in zip(a, b, c)]
        self.check("dp4a", a + b + c, expected)

    def test_bytes_are_permuted(self):
        a, b = self.words(LANES), self.words(LANES)
        places = [self.random.getrandbits(16) & 0x7777 for _ in range(LANES)]
        expected = [sum(((x | y << 32) >> 8 * (p >> 4 * i & 7) & 255) << 8 * i for i in range(4))
                    for x, y, p in zip(a, b, places)]
        self.check("permute", a + b + places, expected)

    def test_halves_are_added_and_multiplied_by_twos(self):
        numbers = [half_bits_of(x) for x in FLOATS if abs(x) < 65520]
        a = [self.random.choice(numbers) | self.random.choice(numbers) << 16 for _ in range(LANES)]
        b = [self.random.choice(numbers) | self.random.choice(numbers) << 16 for _ in range(LANES)]
        a[:2], b[:2] = [0x7bff3c00, 0x7c007e00], [0x7bff0001, 0xfc003c00]  # overflow, infinities, NaN

        def both(function):
            return [half_bits_of(function(half_of(x & 0xffff), half_of(y & 0xffff))) |
                    half_bits_of(function(half_of(x >> 16), half_of(y >> 16))) << 16 for x, y in zip(a, b)]
        self.check("halves", a + b, both(lambda x, y: x + y) + both(lambda x, y: x * y), "f16x2")

    def test_floats_become_the_nearest_integers(self):
        given = [bits_of(x if abs(x) < 2 ** 31 else 9.5) for x in FLOATS]
        self.check("nearest", given, [round(float_of(x)) & MASK for x in given])

    def test_small_floats_become_floats(self):
        halves = [half_bits_of(x) for x in FLOATS[:-2]] + [0x7c01, 0x0001]
        self.check("from_half", halves, [bits_of(half_of(x)) for x in halves], "f32")
        given = [bits_of(x) >> 16 for x in FLOATS[:-1]] + [0x7fc0]
        self.check("from_bf16", given, [x << 16 for x in given], "f32")

    def test_floats_become_small_floats(self):
        given = [bits_of(x) for x in FLOATS[:-1]] + [NAN]
        self.check("to_half", given, [half_bits_of(float_of(x)) for x in given], "f16")
        given = [self.random.getrandbits(31) % 0x7f000000 for _ in range(28)] + [0x3f808000, 0x3f818000, 0x7f800000, 1]
        expected = [(x + 0x7fff + (x >> 16 & 1)) >> 16 for x in given]  # the nearest, ties to even
        self.check("to_bf16", given, expected)

    def test_products_are_rounded_before_a_sum_unless_fused(self):
        a, b = ([bits_of(self.random.uniform(1, 2)) for _ in range(LANES)] for _ in range(2))
        c = [bits_of(-float_of(bits_of(float_of(x) * float_of(y)))) for x, y in zip(a, b)]
        rounded = [bits_of(float_of(bits_of(float_of(x) * float_of(y))) + float_of(z)) for x, y, z in zip(a, b, c)]
        exact = [bits_of(float_of(x) * float_of(y) + float_of(z)) for x, y, z in zip(a, b, c)]
        self.assertNotEqual(rounded, exact)
        self.check("multiply_add", a + b + c, rounded + exact, "f32")

    def test_values_are_shuffled(self):
        low, high, floats = self.words(LANES), self.words(LANES), [bits_of(x) for x in FLOATS]
        lanes = [self.random.randrange(LANES) for _ in range(LANES)]
        expected = [of[lane] for of in (low, high, floats) for lane in lanes]
        self.check("shuffle", low + high + floats + lanes, expected)
        self.check("shuffle_xor", low, [low[i ^ 1 << bit] for bit in range(5) for i in range(LANES)])

    def test_votes_are_collected(self):
        given = [self.random.randrange(200) for _ in range(LANES)]
        self.check("ballot", given, [sum((x > 99) << i for i, x in enumerate(given))] * LANES)

    def tree(self, numbers):
        while len(numbers) > 1:
            half = len(numbers) // 2
            numbers = [float_of(bits_of(x + y)) for x, y in zip(numbers[:half], numbers[half:])]
        return bits_of(numbers[0])

    def test_warps_sum_up_and_find_the_largest(self):
        given, floats = self.words(LANES), [bits_of(self.random.uniform(-1, 1)) for _ in range(LANES)]
        self.check("sums", given + floats,
                   [sum(given) & MASK] * LANES + [self.tree([float_of(x) for x in floats])] * LANES)
        self.check("largest", given + floats,
                   [max(given)] * LANES + [bits_of(max(float_of(x) for x in floats))] * LANES)

    def test_lanes_part_and_meet_again(self):
        rounds, values = [self.random.randrange(20) for _ in range(LANES)], self.words(LANES)
        totals = [sum(values[k] if k % 2 else 3 * values[k] for k in range(n)) + 7 * (i % 2) & MASK
                  for i, n in enumerate(rounds)]
        self.check("parted", rounds + values, [sum(totals) & MASK] * LANES + totals)

    def test_atomics_of_words(self):
        given, own = self.words(2 * LANES), self.words(2 * LANES)
        n, out = 2 * LANES, [5, 7, 0xfff0ffff] + [0] * (2 * LANES - 3)
        largest, common = max([7, *given]), 0xfff0ffff
        for word in given:
            common &= word
        expected = [5 + sum(given) & MASK, largest, common] + [0] * (n - 3)
        expected += [x + y & MASK for x, y in zip(own, given)] + own
        self.check("atomics", given, expected, n_threads=n, out=out + own + [UNWRITTEN] * n)

    def test_atomics_of_floats_and_double_words(self):
        floats = [self.random.randrange(-100, 100) / 4 for _ in range(LANES)]
        wide = [self.random.getrandbits(64) for _ in range(LANES)]
        total, largest = sum(wide) + 3 & (1 << 64) - 1, max(wide)
        self.check("atomics_of_other_types", [bits_of(x) for x in floats] + words_of(struct.pack("<32Q", *wide)),
                   [bits_of(sum(floats) + 1), UNWRITTEN, total & MASK, total >> 32, largest & MASK, largest >> 32],
                   out=[bits_of(1.0), UNWRITTEN, 3, 0, 0, 0])

    def test_sixteen_bytes_are_loaded(self):
        given = self.words(4 * LANES)
        self.check("loads", given, [given[i] ^ given[4 * (LANES - 1 - i // 4) + i % 4] << 1 & MASK
                                    for i in range(4 * LANES)])

    def test_barriers_show_what_others_wrote(self):
        n = 3 * LANES
        given = self.words(n)
        self.check("barriers", given, [given[i ^ 5] for i in range(n)] + [given[(i + 37) % n] for i in range(n)],
                   n_threads=n)

    def test_fences_let_stores_through(self):
        given = self.words(LANES)
        self.check("fences", given, [x + more & MASK for more in range(3) for x in given])


class Served(Executed):
    """Kernels as they are served, with the emulator's memory."""

    def told(self, *request):
        self.emulator.ask(*request)
        told = {"parameter": [], "region": []}
        while (line := self.emulator.answer()) != ["end"]:
            if line[0] in ("parameter", "region"):
                told[line[0]].append(line[1:])
            else:
                told[line[0]] = line[1:]
        return told

    def execute(self, kernel, told, products=None):
        """The regions as they lie after the kernel."""
        machine = Machine(kernel, products)
        regions = [bytearray.fromhex(before) for _, before, _ in told["region"]]
        for (address, _, _), content in zip(told["region"], regions):
            machine.memory.add(int(address), content)
        x, y, n_threads, shared = map(int, told["launch"])
        machine.launch((x, y, 1), (n_threads, 1, 1), shared, [bytes.fromhex(p) for (p,) in told["parameter"]])
        RAN.update(machine.ran)
        return regions


class Tile(Served):
    """multiply_thin<1>: sixteen rows of weights by eight of x."""

    def test_a_tile_of_each_kind_of_scales_is_the_product(self):
        # One scale a block; two, one a half; minimums; minimums of halves; floats, without matrix products.
        for fmt, n_rows, n_columns, n_x_rows in (("Q8_0", 16, 512, 8), ("Q6_K", 13, 256, 5), ("Q4_K", 16, 256, 8),
                                                 ("Q2_K", 9, 256, 8), ("F16", 5, 256, 3)):
            with self.subTest(fmt):
                told = self.told("tile", fmt, n_rows, n_columns, n_x_rows)
                regions = self.execute(kernel_of(self.tiles, "multiply_thinILj1E"), told)
                for (_, _, after), region in zip(told["region"], regions):
                    self.assertEqual(region.hex(), after, "interpreted, and emulated")
                self.check_product(told, regions[0], fmt, n_rows, n_columns, n_x_rows)

    def check_product(self, told, out, fmt, n_rows, n_columns, n_x_rows):
        weights, rounded = ([float_of(word) for word in words_of(bytes.fromhex(told[name][0]))]
                            for name in ("weights", "x"))
        if fmt == "F16":  # reads x as floats: the second region after out and the weights
            rounded = [float_of(word) for word in words_of(bytes.fromhex(told["region"][2][1]))]
        stride, x_stride = int(told["stride"][0]), len(rounded) // n_x_rows
        got = words_of(bytes(out))
        for i in range(n_x_rows):
            for row in range(stride):
                if row >= n_rows:
                    self.assertEqual(got[i * stride + row], UNWRITTEN)
                    continue
                terms = [w * x for w, x in zip(weights[row * n_columns:(row + 1) * n_columns], rounded[i * x_stride:])]
                self.assertLessEqual(abs(float_of(got[i * stride + row]) - sum(terms)), 3e-6 * sum(map(abs, terms)))


class Attention(Served):
    """attend<16, kv_f16>: up to sixteen queries, whose f16 products PTX does not define to the bit."""

    def differences(self, told, regions):
        """Of the outputs; all other memory is to be the same."""
        for (_, _, after), region in list(zip(told["region"], regions))[1:]:
            self.assertEqual(region.hex(), after)
        emulated = words_of(bytes.fromhex(told["region"][0][2]))
        return [abs(float_of(x) - float_of(y)) for x, y in zip(words_of(bytes(regions[0])), emulated)]

    def test_attention_is_that_of_the_emulator(self):
        kernel = kernel_of(self.attention, "attendILj16E6kv_f16")
        for n_heads, dim, n_rows, position in ((5, 32, 1, 39), (2, 64, 7, 29)):
            with self.subTest(heads=n_heads, dim=dim, rows=n_rows):
                told = self.told("attend", n_heads, dim, n_rows, position)
                differences = self.differences(told, self.execute(kernel, told))
                self.assertLess(max(differences), 5e-4)  # weights are halves

    def test_swapped_rows_are_seen_in_attention(self):
        kernel, told = kernel_of(self.attention, "attendILj16E6kv_f16"), self.told("attend", 5, 32, 1, 39)
        regions = self.execute(kernel, told, swapped(F16, "b", 0))
        self.assertGreater(max(self.differences(told, regions)), 1e-2)


class Layouts(unittest.TestCase):
    def test_fragments_are_those_of_the_second_source(self):
        self.assertEqual(written(), (pathlib.Path(__file__).parent / "fragments.txt").read_text())

    def test_every_element_is_held_once(self):
        for opcode, product in PRODUCTS.items():
            for name, shape in (("a", (16, product.k)), ("b", (product.k, 8)), ("c", (16, 8))):
                with self.subTest(opcode, layout=name):
                    places = [place for of_lane in product.layouts[name] for place in of_lane]
                    self.assertEqual(sorted(places), [(r, c) for r in range(shape[0]) for c in range(shape[1])])


class Complete(unittest.TestCase):
    def test_each_primitive_has_a_kernel(self):
        primitives = set(re.findall(r"(?m)^(?:template <.*> )?__device__ .*\b(simt_\w+)\(", SIMT_CUDA.read_text()))
        self.assertIn("simt_mma_s8", primitives)
        kernels = (pathlib.Path(__file__).parent / "primitives.cu").read_text()
        self.assertEqual(primitives - set(re.findall(r"\bsimt_\w+", kernels)), set())


class Refused(unittest.TestCase):
    """What a GPU would not do, or what nobody taught the interpreter, is named."""

    def run_text(self, body, n_threads=LANES):
        text = ".version 9.0\n.target sm_90a\n.visible .entry k(\n.param .u64 k_param_0\n)\n{\n" \
            ".reg .pred %p<9>;\n.reg .b32 %r<99>;\n.reg .b64 %rd<9>;\n" + body + "\nret;\n}\n"
        machine = Machine(kernel_of(text, "k"))
        self.memory = bytearray(256)
        machine.memory.add(OUT, self.memory)
        machine.launch((1, 1, 1), (n_threads, 1, 1), 0, [OUT.to_bytes(8, "little")])

    def refuses(self, error, message, body, n_threads=LANES):
        with self.assertRaisesRegex(error, message):
            self.run_text(body, n_threads)

    def test_an_unknown_opcode(self):
        self.refuses(Unknown, "opcode brev.b32", "mov.u32 %r1, 1; brev.b32 %r2, %r1;")
        self.refuses(Unknown, "opcode ld.global.evict_last.u32", "ld.param.u64 %rd1, [k_param_0];\n"
                     "ld.global.evict_last.u32 %r1, [%rd1];")

    def test_a_register_that_was_never_written(self):
        self.refuses(Fault, "add.s32 %r2, %r1, 1: .*never written", "add.s32 %r2, %r1, 1;")
        self.refuses(Fault, "never written", "mov.u32 %r3, %tid.x; setp.lt.u32 %p1, %r3, 4; @%p1 mov.u32 %r1, 1;\n"
                     "add.s32 %r2, %r1, 1;")

    def test_memory_that_is_not_there_or_not_aligned(self):
        self.refuses(Fault, "nothing is there", "ld.param.u64 %rd1, [k_param_0]; ld.global.u32 %r1, [%rd1+256];")
        self.refuses(Fault, "not aligned", "ld.param.u64 %rd1, [k_param_0];\n"
                     "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+8];")

    def test_lanes_that_miss_an_instruction_of_the_warp(self):
        self.refuses(Fault, "shfl.*31 of 32 lanes", "mov.u32 %r1, %tid.x; setp.ne.s32 %p1, %r1, 3;\n"
                     "@%p1 shfl.sync.bfly.b32 %r2|%p2, %r1, 1, 31, -1;")

    def test_warps_that_miss_a_barrier(self):
        self.refuses(Fault, "1 warps never reach", "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;\n"
                     "@%p1 bra $L; bar.sync 0; $L:", 2 * LANES)


def main(arguments):
    ran = None
    if arguments[:1] == ["--ran"]:
        ran, arguments = arguments[1], arguments[2:]
    if len(arguments) < 4:
        print("skipped: nvcc is not installed, so there is no PTX to execute")
        return 77
    program, *objects = arguments[:4]
    Executed.primitives, Executed.tiles, Executed.attention = map(ptx_of, objects)
    Executed.emulator = Emulator(program)
    result = unittest.main(argv=["test_ptx.py", *arguments[4:]], exit=False).result
    ended_well = Executed.emulator.close()
    if len(arguments) == 4 and (missing := written_by_hand() - RAN):
        print(f"simt_cuda.h has {', '.join(sorted(missing))}, which no test executed")
        ended_well = False
    if ran:
        pathlib.Path(ran).write_text("".join(f"{opcode}\n" for opcode in sorted(RAN)))
    return 0 if ended_well and result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
