# SPDX-License-Identifier: MIT
"""GGUF version 3, as much as the demo model needs: a writer and a reader of F32, F16 and Q8_0 files.

Layout: header; key/value pairs; tensor directory; padding; tensor data, each tensor on a multiple of ALIGNMENT.
Dimensions are listed fastest first; data is little-endian, rows one after another.
"""
import struct

import numpy as np

ALIGNMENT = 32
F32, F16, Q8_0 = 0, 1, 8
TYPE_NAMES = {"F32": F32, "F16": F16, "Q8_0": Q8_0}
BLOCK = 32
Q8_0_BLOCK = np.dtype([("scale", "<f2"), ("values", "i1", BLOCK)])

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 4, 5, 6, 7, 8, 9, 10
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", UINT32: "I", INT32: "i", FLOAT32: "f", BOOL: "?", UINT64: "Q", 11: "q",
           12: "d"}


def quantize_q8_0(matrix):
    """Each 32 neighbours of a row share the scale max / 127, rounded to 16 bits before it is used."""
    blocks = np.ascontiguousarray(matrix, np.float32).reshape(-1, BLOCK)
    scale = (np.abs(blocks).max(axis=1) / 127).astype(np.float16)
    divisor = scale.astype(np.float32)
    inverse = np.divide(1, divisor, out=np.zeros_like(divisor), where=divisor > 0)
    out = np.empty(len(blocks), Q8_0_BLOCK)
    out["scale"] = scale
    out["values"] = np.clip(np.rint(blocks * inverse[:, None]), -127, 127)
    return out


def to_bytes(array, kind):
    if kind == Q8_0:
        return quantize_q8_0(array).tobytes()
    return np.ascontiguousarray(array, "<f4" if kind == F32 else "<f2").tobytes()


def from_bytes(data, kind, shape):
    if kind == Q8_0:
        blocks = np.frombuffer(data, Q8_0_BLOCK)
        values = blocks["values"].astype(np.float32) * blocks["scale"].astype(np.float32)[:, None]
    else:
        values = np.frombuffer(data, "<f4" if kind == F32 else "<f2").astype(np.float32)
    return values.reshape(shape)


def size_of(count, kind):
    return count // BLOCK * Q8_0_BLOCK.itemsize if kind == Q8_0 else count * (4 if kind == F32 else 2)


def _string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(kind, value):
    if kind == STRING:
        return _string(value)
    if isinstance(kind, tuple):  # (ARRAY, element kind)
        head = struct.pack("<IQ", kind[1], len(value))
        return head + b"".join(_value(kind[1], item) for item in value)
    return struct.pack("<" + SCALARS[kind], value)


def write(path, pairs, tensors):
    """pairs: (key, kind, value) in order; tensors: (name, array, F32 | F16 | Q8_0) in order."""
    directory, bodies, offset = b"", [], 0
    for name, array, kind in tensors:
        body = to_bytes(array, kind)
        body += bytes(-len(body) % ALIGNMENT)
        dimensions = array.shape[::-1]
        directory += _string(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, offset)
        bodies.append(body)
        offset += len(body)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    for key, kind, value in pairs:
        head += _string(key) + struct.pack("<I", kind[0] if isinstance(kind, tuple) else kind) + _value(kind, value)
    head += directory
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + b"".join(bodies))


class _Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, code):
        value, = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length:self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, count = self.number("I"), self.number("Q")
            return [self.value(element) for _ in range(count)]
        return self.number(SCALARS[kind])


def read(path):
    """(pairs as a dict, tensors as a dict of float32 arrays)."""
    cursor = _Cursor(path.read_bytes())
    if cursor.data[:4] != b"GGUF":
        raise ValueError(f"{path} is no GGUF file")
    cursor.at = 4
    _, tensor_count, pair_count = cursor.number("I"), cursor.number("Q"), cursor.number("Q")
    pairs = {cursor.string(): cursor.value(cursor.number("I")) for _ in range(pair_count)}
    directory = []
    for _ in range(tensor_count):
        name = cursor.string()
        dimensions = [cursor.number("Q") for _ in range(cursor.number("I"))]
        directory.append((name, dimensions[::-1], cursor.number("I"), cursor.number("Q")))
    base = -(-cursor.at // ALIGNMENT) * ALIGNMENT
    tensors = {}
    for name, shape, kind, offset in directory:
        begin = base + offset
        tensors[name] = from_bytes(cursor.data[begin:begin + size_of(int(np.prod(shape)), kind)], kind, shape)
    return pairs, tensors
