# SPDX-License-Identifier: MIT
"""The number formats of GGUF files: random blocks of each, and what their bytes stand for, by the published layouts."""

import numpy as np

IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], float)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])

# name: number in files, elements of a block, fields in the order of the file. A field is (name, bytes).
FORMATS = {
    "F32": (0, 1, [("real", 4)]),
    "F16": (1, 1, [("half", 2)]),
    "BF16": (30, 1, [("top", 2)]),
    "Q4_0": (2, 32, [("d", 2), ("qs", 16)]),
    "Q4_1": (3, 32, [("d", 2), ("m", 2), ("qs", 16)]),
    "Q5_0": (6, 32, [("d", 2), ("qh", 4), ("qs", 16)]),
    "Q5_1": (7, 32, [("d", 2), ("m", 2), ("qh", 4), ("qs", 16)]),
    "Q8_0": (8, 32, [("d", 2), ("qs", 32)]),
    "Q2_K": (10, 256, [("scales", 16), ("qs", 64), ("d", 2), ("m", 2)]),
    "Q3_K": (11, 256, [("qh", 32), ("qs", 64), ("scales", 12), ("d", 2)]),
    "Q4_K": (12, 256, [("d", 2), ("m", 2), ("scales", 12), ("qs", 128)]),
    "Q5_K": (13, 256, [("d", 2), ("m", 2), ("scales", 12), ("qh", 32), ("qs", 128)]),
    "Q6_K": (14, 256, [("qs", 128), ("qh", 64), ("scales", 16), ("d", 2)]),
    "IQ4_NL": (20, 32, [("d", 2), ("qs", 16)]),
    "IQ4_XS": (23, 256, [("d", 2), ("high", 2), ("low", 4), ("qs", 128)]),
    "MXFP4": (39, 32, [("e", 1), ("qs", 16)]),
}


def bits(b, n):
    """The n-bit fields of bytes, low bits first: [..., bytes] → [..., bytes, 8 / n]."""
    return (b[..., None] >> np.arange(0, 8, n)) & ((1 << n) - 1)


def halves(b):
    """Nibbles: the low ones of all bytes, then the high ones."""
    return np.concatenate([b & 15, b >> 4], -1).astype(float)


def half(b):
    return np.ascontiguousarray(b).view("<f2").astype(float)


def six_bits(s):
    """Q4_K's and Q5_K's twelve bytes: eight scales, eight minimums."""
    first, second, third = s[:, 0:4], s[:, 4:8], s[:, 8:12]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6) << 4], 1)
    mins = np.concatenate([second & 63, (third >> 4) | (second >> 6) << 4], 1)
    return scales.astype(float), mins.astype(float)


def nibble_pairs(qs):
    """Q4_K and Q5_K: 32 bytes hold two groups, in their low and high halves."""
    return np.stack([qs.reshape(-1, 4, 32) & 15, qs.reshape(-1, 4, 32) >> 4], 2).reshape(-1, 8, 32)


def bit_pairs(qs):
    """Q2_K and Q3_K: 32 bytes hold four groups of 32, low bits first."""
    return np.moveaxis(bits(qs.reshape(-1, 2, 32), 2), 3, 2).reshape(-1, 8, 32)


def values_of(name, f):
    """[blocks, elements] from fields, each [blocks, bytes]."""
    if name == "F32":
        return np.ascontiguousarray(f["real"]).view("<f4").astype(float)
    if name == "F16":
        return half(f["half"])
    if name == "BF16":
        return (np.ascontiguousarray(f["top"]).view("<u2").astype(np.uint32) << 16).view(np.float32).astype(float)
    if name == "MXFP4":
        return 2.0 ** (f["e"].astype(float) - 127) * E2M1[halves(f["qs"]).astype(int)]
    d = half(f["d"])
    if name == "Q8_0":
        return d * f["qs"].view(np.int8)
    if name == "Q4_0":
        return d * (halves(f["qs"]) - 8)
    if name == "Q4_1":
        return d * halves(f["qs"]) + half(f["m"])
    if name == "IQ4_NL":
        return d * IQ4[halves(f["qs"]).astype(int)]
    if name in ("Q5_0", "Q5_1"):
        q = halves(f["qs"]) + 16.0 * bits(f["qh"], 1).reshape(-1, 32)
        return d * (q - 16) if name == "Q5_0" else d * q + half(f["m"])
    if name == "IQ4_XS":
        s = bits(f["low"], 4).reshape(-1, 8) | bits(f["high"], 2).reshape(-1, 8) << 4
        q = halves(f["qs"].reshape(-1, 8, 16)).astype(int)
        return (d[:, :, None] * (s - 32.0)[:, :, None] * IQ4[q]).reshape(-1, 256)
    if name == "Q2_K":
        q = bit_pairs(f["qs"]).reshape(-1, 16, 16)
        s, m = f["scales"] & 15, f["scales"] >> 4
        return (d[..., None] * s[..., None] * q - half(f["m"])[..., None] * m[..., None]).reshape(-1, 256)
    if name == "Q3_K":
        s = f["scales"]
        low = np.concatenate([s[:, :8] & 15, s[:, :8] >> 4], 1)
        high = np.moveaxis(bits(s[:, 8:], 2), 2, 1).reshape(-1, 16)
        top = np.moveaxis(bits(f["qh"], 1), 2, 1).reshape(-1, 16, 16)
        q = bit_pairs(f["qs"]).reshape(-1, 16, 16) | top << 2
        scale = (low | high << 4) - 32.0
        return (d[..., None] * scale[..., None] * (q - 4.0)).reshape(-1, 256)
    if name in ("Q4_K", "Q5_K"):
        s, m = six_bits(f["scales"])
        q = nibble_pairs(f["qs"]).astype(float)
        if name == "Q5_K":
            q = q + 16.0 * np.moveaxis(bits(f["qh"], 1), 2, 1)
        return (d[..., None] * s[..., None] * q - half(f["m"])[..., None] * m[..., None]).reshape(-1, 256)
    assert name == "Q6_K"
    low = np.moveaxis(bits(f["qs"].reshape(-1, 2, 64), 4), 3, 2).reshape(-1, 256)
    high = np.moveaxis(bits(f["qh"].reshape(-1, 2, 32), 2), 3, 2).reshape(-1, 256)
    q = (low | high << 4).reshape(-1, 16, 16) - 32.0
    return (d[..., None] * f["scales"].view(np.int8).astype(float)[..., None] * q).reshape(-1, 256)


def random_fields(name, n, random, centred):
    """Random blocks, before their scales are chosen: those are 1. `centred` blocks have a minimum that puts the middle
    of the quants on 0."""
    _, elements, fields = FORMATS[name]
    f = {k: random.integers(0, 256, (n, size), np.uint8) for k, size in fields}
    if "d" in f:
        f["d"] = np.full((n, 1), 1, "<f2").view(np.uint8).reshape(n, 2)
    if name == "MXFP4":
        f["e"] = random.integers(126, 129, (n, 1), np.uint8)
    if "m" in f and centred:
        middle = {"Q4_1": -7.5, "Q5_1": -15.5, "Q2_K": 1.5, "Q4_K": 7.5, "Q5_K": 15.5}[name]
        f["m"] = np.full((n, 1), middle, "<f2").view(np.uint8).reshape(n, 2)
        if name == "Q2_K":  # minimums equal to the scales
            f["scales"] = (f["scales"] & 15) * 17
        elif elements == 256:
            s = f["scales"]
            s[:, 4:8], s[:, 8:] = s[:, 0:4], (s[:, 8:] & 15) * 17
    return f


def random_tensor(name, rows, columns, deviation, random):
    """(bytes, values [rows, columns]) of that standard deviation, nearly."""
    number, elements, fields = FORMATS[name]
    n = rows * columns // elements
    if elements == 1:
        real = (random.standard_normal((n, 1)) * deviation).astype("<f4")
        if name == "F16":
            raw = real.astype("<f2").view(np.uint8).reshape(n, 2)
        elif name == "BF16":
            raw = (real.view("<u4") >> 16).astype("<u2").view(np.uint8).reshape(n, 2)
        else:
            raw = real.view(np.uint8).reshape(n, 4)
        f = {fields[0][0]: raw}
    else:
        f = random_fields(name, n, random, True)
        size = np.sqrt((values_of(name, f) ** 2).mean())
        factor = deviation / size * random.choice([-1.0, 1.0], (n, 1)) * random.uniform(0.7, 1.3, (n, 1))
        if name == "MXFP4":
            f["e"] = (f["e"].astype(int) + round(float(np.log2(deviation / size)))).astype(np.uint8)
        for k in {"d", "m"} & f.keys():
            f[k] = (half(f[k]) * factor).astype("<f2").view(np.uint8).reshape(n, 2)
    raw = np.concatenate([f[k] for k, _ in fields], 1)
    return raw.tobytes(), values_of(name, f).reshape(rows, columns)
