# SPDX-License-Identifier: MIT
"""The codec against the golden vectors, and its tables against those of proto/."""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess

import pytest

from quern import _codec, _tables
from quern._values import Malformed

TOP = pathlib.Path(__file__).resolve().parents[4]
VECTORS = json.loads((TOP / "proto/golden/messages.json").read_text(encoding="utf-8"))["vectors"]


def of_json(value):
    """A value of a vector: byte strings stand as {"hex": …}, large integers as {"int": …}."""
    if isinstance(value, dict):
        if set(value) == {"hex"}:
            return bytes.fromhex(value["hex"])
        if set(value) == {"int"}:
            return int(value["int"])
        return {key: of_json(item) for key, item in value.items()}
    return [of_json(item) for item in value] if isinstance(value, list) else value


def same(a, b):
    """Equality over tuples and lists, and over what a float 32 keeps of a number."""
    if isinstance(a, dict) and isinstance(b, dict):
        return set(a) == set(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == pytest.approx(b, rel=1e-6) if isinstance(a, float) else a == b


def whole(table, fields):
    """The fields with what is left out put in, and without what no table knows."""
    out = {}
    for field in table.fields:
        value = fields.get(field.key, field.default())
        if field.type == _codec.f.MAP and value is not None:
            value = whole(field.table, value)
        elif field.type == _codec.f.MAPS:
            value = [whole(field.table, item) for item in value]
        elif field.type == _codec.f.PROMPT and value and isinstance(value[0], dict):
            value = [whole(_tables.MESSAGE, item) for item in value]
        out[field.key] = value
    return out


@pytest.mark.parametrize("vector", [v for v in VECTORS if "message" in v], ids=lambda v: v["name"])
def test_a_vector_is_read_and_written_as_it_stands(vector):
    data = bytes.fromhex(vector["hex"])
    message = of_json(vector["message"])
    kind, fields = _codec.decode(data)
    assert kind == message.pop("k")
    assert same(fields, whole(_tables.KINDS[kind], message))
    written = _codec.encode(kind, fields)
    if vector.get("canonical", True):
        assert written == data
    else:
        assert _codec.decode(written) == (kind, fields)


@pytest.mark.parametrize("vector", [v for v in VECTORS if "error" in v], ids=lambda v: v["name"])
def test_a_vector_that_is_wrong_is_refused_with_the_reason(vector):
    with pytest.raises(Malformed) as refusal:
        _codec.decode(bytes.fromhex(vector["hex"]))
    assert str(refusal.value) == vector["error"]


def test_there_are_vectors_of_every_kind():
    assert len(VECTORS) >= 100
    assert {of_json(v["message"])["k"] for v in VECTORS if "message" in v} == set(_tables.KINDS)


def test_the_tables_are_those_of_the_protocol():
    printed = subprocess.run([os.environ["QUERN_PRINT_TABLES"]], check=True, capture_output=True).stdout
    here = (TOP / "client/python/src/quern/_tables.py").read_bytes()
    assert here == printed, "write it anew: build/client/python/print_tables > client/python/src/quern/_tables.py"


def test_every_parameter_of_a_generate_can_be_given():
    given = set(_tables.Parameters.__annotations__)
    assert given == set(_tables.KINDS["generate"].by_key) - {"id", "prompt", "embed", "document", "on_disconnect"}


def test_what_nobody_would_take_is_not_written():
    good = {"id": bytes(16), "prompt": "Hi"}
    for wrong, text in (({"max_tokens": -1}, "max_tokens: -1 is out of range"), ({"temperature": "hot"}, "temperature"),
                        ({"temperature": float("nan")}, "temperature"), ({"prompt": ""}, "prompt: is empty"),
                        ({"prompt": [1, -1]}, "prompt: expected token ids"), ({"prompt": b"Hi"}, "prompt: expected"),
                        ({"prompt": [1, True]}, "prompt: expected token ids"), ({"special": 1}, "special: expected"),
                        ({"prompt": [{"role": "user"}]}, "message 0: content: missing"),
                        ({"prompt": [{"role": "user", "content": "a", "odd": "b"}]}, "message 0: odd"),
                        ({"tools": "[]"}, "tools: expected"),
                        ({"prompt": "\ud800"}, "prompt: not UTF-8 at byte 0"),
                        ({"stop": [""]}, "stop: item 0: is empty"),
                        ({"logit_bias": [(1, 101.0)]}, "logit_bias: item 0"), ({"seed": 2**64}, "seed"),
                        ({"on_disconnect": "wait"}, "on_disconnect"), ({"id": b"short"}, "id: expected"),
                        ({"tempo": 1}, "tempo: unknown key"), ({"max_tokens": 1.0}, "expected an integer")):
        with pytest.raises(Malformed, match="^generate: ") as refusal:
            _codec.encode("generate", {**good, **wrong})
        assert text in str(refusal.value)


def test_no_damage_does_anything_but_refuse():
    """Any byte of any vector changed, cut or doubled: a message or a refusal, never another exception."""
    chance = random.Random(1)
    refused = 0
    for vector in VECTORS:
        data = bytes.fromhex(vector["hex"])
        for _ in range(60):
            damaged = bytearray(data)
            for _ in range(chance.randrange(1, 4)):
                at = chance.randrange(len(damaged) + 1)
                how = chance.randrange(3)
                if how == 0 and damaged:
                    damaged[at % len(damaged)] = chance.randrange(256)
                elif how == 1:
                    del damaged[at:]
                else:
                    damaged[at:at] = bytes([chance.randrange(256)])
            try:
                kind, fields = _codec.decode(bytes(damaged))
            except Malformed:
                refused += 1
            else:
                again = _codec.decode(_codec.encode(kind, fields))  # rounds biases to 32 bits
                assert again[0] == kind and _codec.decode(_codec.encode(*again)) == again
    assert refused > 1000


def test_depth_is_no_way_to_make_a_reader_fall_over():
    for n in (10, 600, 5000, 100_000):
        with pytest.raises(Malformed):
            _codec.decode(b"\x82\xa1k\xa3bye\xa1x" + b"\x91" * n + b"\xc0")
    with pytest.raises(Malformed):
        _codec.decode(b"\x82\xa1k\xa3bye\xa1x\xdd\xff\xff\xff\xff")
