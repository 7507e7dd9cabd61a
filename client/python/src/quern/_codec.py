# SPDX-License-Identifier: MIT
"""Messages and bytes, by the tables of the protocol.

`decode` is strict about what it knows and silent about what it does not, as PROTOCOL.md says: a `Malformed` names the
key. What it returns has every key of its table, those left out with their defaults. `encode` refuses what `decode`
would, so that a mistake shows at its sender. msgpack reads and writes the values; which may stand where is said here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgpack

from . import _field as f
from . import _tables as tables
from ._field import Field, Table
from ._values import (
    Malformed,
    Pairs,
    check_biases,
    check_count,
    check_histogram,
    check_ids,
    check_list,
    check_logprobs,
    check_pair,
    check_scalar,
    check_strings,
    check_text,
)

Fields = dict[str, Any]

_BROKEN = "truncated, or not msgpack"


def _pack(value: object, single: bool = False) -> bytes:
    return msgpack.packb(value, use_single_float=single)  # type: ignore[no-any-return]


_TOPIC_BYTES = 32  # session, id


def _check_whole(table: Table, fields: Fields) -> None:
    """What no single field shows."""
    if "reason" in fields and "error" in fields and (fields["reason"] == "error") != (fields["error"] is not None):
        raise Malformed("error: expected with the reason error, and only with it")
    if fields.get("limit") and fields.get("reason") != "length":
        raise Malformed("limit: expected with the reason length only")
    if fields.get("accepted_tokens", 0) > fields.get("drafted_tokens", 0):  # type: ignore[operator]
        raise Malformed("accepted_tokens: more than drafted_tokens")
    if "data" in fields and fields.get("at", 0) + len(fields["data"]) > fields.get("total", 0):  # type: ignore[operator, arg-type]
        raise Malformed(f"data: exceeds the {fields.get('total', 0)} bytes of total")
    if "topics" in fields:
        _check_credit(fields)
    if "tenants" in fields:
        _check_tenants(fields["tenants"])
    if fields.get("tools") and "prompt" in fields:
        prompt = fields["prompt"]
        if not isinstance(prompt, (list, tuple)) or not prompt or not isinstance(prompt[0], Mapping):
            raise Malformed("tools: expected with messages only")
    if "prompt" in fields and (fields.get("template_kwargs") or fields.get("marks")):
        prompt = fields["prompt"]
        if not isinstance(prompt, (list, tuple)) or not prompt or not isinstance(prompt[0], Mapping):
            raise Malformed("template_kwargs and marks: expected with messages only")
    if "written" in fields:
        _check_question(fields)
    if "prompt" in fields:
        _check_tenant(fields)
        _check_prompt(fields)
        _check_document(fields)
    if fields.get("embed"):
        _check_embedding(fields)
    if "prompt" in fields and "session" not in fields:  # a worker's has an output without asking for the feature
        _check_resume(fields)


def _check_question(fields: Fields) -> None:
    """Of tokenize."""
    if (fields["text"] is not None) == bool(fields["messages"]):
        raise Malformed("expected either text or messages")
    if fields["messages"] and (fields["special"] or fields["bare"]):
        raise Malformed("special and bare: expected with a text only")
    of_chat = ("tools", "template_kwargs", "continue_turn", "written")
    if not fields["messages"] and any(fields[name] for name in of_chat):
        raise Malformed("tools, template_kwargs, continue_turn and written: expected with messages only")


def _check_tenant(fields: Fields) -> None:
    if any(not "!" <= each <= "~" for each in fields.get("request_id") or ""):
        raise Malformed("request_id: expected printable ASCII without blanks")
    if any(fields.get(name) for name in ("rpm", "tpm", "rpd", "tpd")) and not fields.get("tenant"):
        raise Malformed("rpm, tpm, rpd and tpd: expected with tenant only")


def _check_tenants(tenants: Any) -> None:
    if any(one["id"] >= other["id"] for one, other in pairwise(tenants)):
        raise Malformed("tenants: expected in ascending order of ids")


def _check_credit(fields: Fields) -> None:
    topics, counts = fields["topics"], fields.get("counts") or ()
    if len(topics) != len(counts):  # type: ignore[arg-type]
        raise Malformed("counts: expected as many as topics")
    if any(len(topic) != _TOPIC_BYTES for topic in topics):  # type: ignore[union-attr]
        raise Malformed(f"topics: expected {_TOPIC_BYTES} bytes each")


def _has_grammar(fields: Fields) -> bool:
    return bool(fields.get("grammar")) or fields.get("grammar_kind", "gbnf") != "gbnf"


def _check_prompt(fields: Fields) -> None:
    prompt, suffix = fields["prompt"], fields.get("suffix")
    if suffix is not None and (not isinstance(prompt, str) or fields.get("embed")):
        raise Malformed("suffix: expected with a text, and without embed")
    if fields.get("files") and suffix is None:
        raise Malformed("files: expected with suffix only")
    if prompt == "" and suffix is None:
        raise Malformed("prompt: is empty")
    turns = isinstance(prompt, (list, tuple)) and bool(prompt) and isinstance(prompt[0], Mapping)
    if fields.get("continue_turn") and not turns:
        raise Malformed("continue_turn: expected with messages only")
    for name in ("ignore_eos", "min_tokens"):
        if fields.get(name) and _has_grammar(fields):
            raise Malformed(f"{name}: not supported together with a grammar, which ends the output")
    least, most = fields.get("min_tokens"), fields.get("max_tokens")
    if isinstance(least, int) and isinstance(most, int) and 0 < most < least:
        raise Malformed(f"min_tokens: {least} is above max_tokens ({most})")


def _check_embedding(fields: Fields) -> None:
    prompt = fields.get("prompt")
    if isinstance(prompt, (list, tuple)) and prompt and isinstance(prompt[0], Mapping):
        raise Malformed("embed: expected with a text or token ids, not messages")
    told = {
        "max_tokens": fields.get("max_tokens"),
        "min_tokens": fields.get("min_tokens"),
        "logprobs": fields.get("logprobs"),
        "stop and stop_ids": fields.get("stop") or fields.get("stop_ids"),
        "grammar": _has_grammar(fields),
        "thinking_budget": fields.get("thinking_budget") is not None,
    }
    for name, value in told.items():
        if value:
            raise Malformed(f"{name}: not supported with embed, which generates no tokens")


def _check_resume(fields: Fields) -> None:
    output, most = fields.get("output") or (), fields.get("max_tokens") or 0
    n = len(output)  # type: ignore[arg-type]
    digest = fields.get("prompt_digest")
    if not (n or fields.get("off") or fields.get("lost") or digest is not None):
        return
    names = "output, off, lost and prompt_digest"
    if "resume" not in (fields.get("require") or ()):  # type: ignore[operator]
        raise Malformed(f'{names}: expected with "resume" under require')
    if fields.get("embed"):
        raise Malformed(f"{names}: not supported with embed, which generates no tokens")
    if n == 0 and fields.get("off"):
        raise Malformed("off: expected with output only")
    if n > 0 and fields.get("seed") is None:
        raise Malformed("seed: required with output")
    if isinstance(most, int) and 0 < most < n:
        raise Malformed(f"output: {n} ids are more than max_tokens ({most})")


def _check_document(fields: Fields) -> None:
    document = fields.get("document")
    if document is not None and (not isinstance(fields["prompt"], str) or not fields.get("embed")):
        raise Malformed("document: expected with a text and embed")
    if document == "":
        raise Malformed("document: is empty")


# ---- bytes → message ----


def _deeper_than(value: object, depth: int) -> bool:
    """Whether containers stand more than `depth` deep in an unpacked value."""
    level = [value]
    while level:
        containers = [each for each in level if isinstance(each, list)]
        if containers and depth == 0:
            return True
        depth -= 1
        level = [
            item for each in containers for entry in each for item in (entry if isinstance(each, Pairs) else (entry,))
        ]
    return False


def _unpack(data: bytes) -> tuple[Pairs, str | int]:
    """The pairs of the message's map; and how it goes on: the key whose value is broken ("": none that can be read),
    or the number of bytes that follow the map."""
    try:
        value = msgpack.unpackb(data, object_pairs_hook=Pairs, strict_map_key=False, unicode_errors="surrogateescape")
        if not isinstance(value, Pairs):
            raise Malformed("not a msgpack map")
        return value, 0
    except Malformed:
        raise
    except Exception:  # msgpack's reasons are of many classes, and none is for people
        return _unpack_what_there_is(data)


def _unpack_what_there_is(data: bytes) -> tuple[Pairs, str | int]:
    """The same, pair by pair, to say which key is broken."""
    reader = msgpack.Unpacker(
        object_pairs_hook=Pairs,
        strict_map_key=False,
        unicode_errors="surrogateescape",
        max_buffer_size=max(len(data), 1),
    )
    pairs = Pairs()
    key: object = ""
    try:
        reader.feed(data)
        n = reader.read_map_header()
    except Exception:
        raise Malformed("not a msgpack map") from None
    if n > tables.MAX_KEYS:
        raise Malformed(f"{n} keys; at most {tables.MAX_KEYS} are allowed")
    try:
        for _ in range(n):
            key = ""
            key = reader.unpack()
            pairs.append((key, reader.unpack()))
    except Exception:
        return pairs, key if isinstance(key, str) else ""
    return pairs, len(data) - reader.tell()


def _decode_map(table: Table, value: object, depth: int) -> Fields:
    if not isinstance(value, Pairs):
        raise Malformed("expected a map")
    if len(value) > tables.MAX_KEYS:
        raise Malformed(f"{len(value)} keys; at most {tables.MAX_KEYS} are allowed")
    return _decode_pairs(table, value, depth, False)


def _read_pairs(table: Table, pairs: Pairs, depth: int, top: bool) -> Fields:
    """The fields that are there, each as it should be by itself."""
    fields: Fields = {}
    kind_seen = False
    by_key = table.by_key
    for key, value in pairs:
        if not isinstance(key, str):
            raise Malformed("a key is not a string")
        field = by_key.get(key)
        if field is None:
            if top and key == "k":
                if kind_seen:
                    raise Malformed("k: duplicate key")
                kind_seen = True
            elif isinstance(value, list) and _deeper_than(value, depth - 1):
                raise Malformed(f"{key[:40]}: truncated, too deep, or not msgpack")
            continue
        if key in fields:
            raise Malformed(f"{key}: duplicate key")
        try:
            fields[key] = _decode_value(field, value, depth - 1)
        except Malformed as wrong:
            raise Malformed(f"{key}: {wrong}") from None
    return fields


def _decode_pairs(table: Table, pairs: Pairs, depth: int, top: bool) -> Fields:
    fields = _read_pairs(table, pairs, depth, top)
    for field in table.fields:
        if field.key not in fields:
            if field.required:
                raise Malformed(f"{field.key}: missing")
            fields[field.key] = field.default()
    _check_whole(table, fields)
    return fields


def _decode_prompt(value: object, depth: int) -> object:
    if not isinstance(value, (str, list)) or isinstance(value, Pairs):
        raise Malformed("expected a text, an array of token ids, or an array of messages")
    if not value and not isinstance(value, str):  # a text may be, beside a suffix
        raise Malformed("is empty")
    if isinstance(value, str):
        check_text(value, tables.MAX_GENERATE_BYTES, False)
        return value
    if not isinstance(value[0], Pairs):
        check_count(len(value), tables.MAX_PROMPT_IDS)
        return check_ids(value)
    check_count(len(value), tables.MAX_MESSAGES)
    messages = []
    for i, item in enumerate(value):
        try:
            messages.append(_decode_map(tables.MESSAGE, item, depth - 1))
        except Malformed as wrong:
            raise Malformed(f"message {i}: {wrong}") from None
    return messages


def _decode_value(field: Field, value: object, depth: int) -> object:
    kind = field.type
    if kind == f.IDS:
        return check_ids(check_list(value, "an array of token ids", field.high))
    if kind == f.EPOCH:
        return check_pair(value, "[boot, move]")
    if kind == f.RANGE:
        low, high = check_pair(value, "[min, max]")
        if low > high:
            raise Malformed("expected [min, max]")
        return low, high
    if kind in (f.TEXTS, f.BINS):
        return check_strings(field, value)
    if kind == f.PROMPT:
        return _decode_prompt(value, depth)
    if kind == f.BIASES:
        return check_biases(field, value)
    if kind == f.LOGPROBS:
        return check_logprobs(field, value)
    if kind == f.HISTOGRAM:
        return check_histogram(field, value)
    if kind == f.MAP:
        assert field.table
        return _decode_map(field.table, value, depth)
    if kind == f.MAPS:
        assert field.table
        items = []
        for i, item in enumerate(check_list(value, "an array of maps", field.high)):
            try:
                items.append(_decode_map(field.table, item, depth - 1))
            except Malformed as wrong:
                raise Malformed(f"item {i}: {wrong}") from None
        return items
    return check_scalar(field, value)


def decode(data: bytes) -> tuple[str, Fields]:
    """The kind of a message and its fields. `Malformed` when it is none."""
    if not data:
        raise Malformed("an empty message")
    pairs, rest = _unpack(data)
    if len(pairs) > tables.MAX_KEYS:
        raise Malformed(f"{len(pairs)} keys; at most {tables.MAX_KEYS} are allowed")
    kind = next((value for key, value in pairs if key == "k"), None)
    if kind is None:
        raise Malformed("k: missing")
    if not isinstance(kind, str):
        raise Malformed("k: expected a text")
    table = tables.KINDS.get(kind)
    if table is None:
        raise Malformed(f'unknown kind "{kind[:40]}"')
    if len(data) > table.max_bytes:
        raise Malformed(f"{kind}: {len(data)} bytes; at most {table.max_bytes} are allowed")
    try:
        if isinstance(rest, str):
            # What stands before it may be wrong too, and is told first.
            _read_pairs(table, pairs, tables.MAX_DEPTH, True)
            text = "truncated, too deep, or not msgpack" if rest and rest not in table.by_key else _BROKEN
            raise Malformed(f"{rest}: {text}" if rest else text)
        fields = _decode_pairs(table, pairs, tables.MAX_DEPTH, True)
        if kind == "frame" and fields["logprobs"] and len(fields["logprobs"]) != len(fields["ids"]):
            raise Malformed(f"logprobs: {len(fields['logprobs'])} rows for {len(fields['ids'])} ids")
        if kind == "frame" and fields["pieces"]:
            entries = sum(map(len, fields["logprobs"] or ()))
            if len(fields["pieces"]) != entries:
                raise Malformed(f"pieces: {len(fields['pieces'])} for {entries} log probabilities")
        if rest:
            raise Malformed(f"{rest} bytes follow the message")
    except Malformed as wrong:
        raise Malformed(f"{kind}: {wrong}") from None
    return kind, fields


# ---- message → bytes ----


def _encode_prompt(value: object) -> bytes:
    if isinstance(value, str):
        return _pack(_decode_prompt(value, 0))
    if not isinstance(value, Sequence) or isinstance(value, (bytes, bytearray)):
        raise Malformed("expected a text, an array of token ids, or an array of messages")
    if not value:
        raise Malformed("is empty")
    if not isinstance(value[0], Mapping):
        check_count(len(value), tables.MAX_PROMPT_IDS)
        return _pack(check_ids(list(value)))
    check_count(len(value), tables.MAX_MESSAGES)
    out = [_pack_header(0x90, 0xDC, len(value))]
    for i, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise Malformed(f"message {i}: expected a map")
        try:
            out.append(_encode_map(tables.MESSAGE, item, None))
        except Malformed as wrong:
            raise Malformed(f"message {i}: {wrong}") from None
    return b"".join(out)


def _pack_header(short: int, wide: int, n: int) -> bytes:
    """The head of an array or a map."""
    if n < 16:
        return bytes([short | n])
    if n < 1 << 16:
        return bytes([wide]) + n.to_bytes(2, "big")
    return bytes([wide + 1]) + n.to_bytes(4, "big")


def _encode_value(field: Field, value: Any) -> bytes:
    kind = field.type
    if kind == f.PROMPT:
        return _encode_prompt(value)
    if kind == f.MAP:
        assert field.table
        return _encode_map(field.table, value, None)
    if kind == f.MAPS:
        assert field.table
        items = [_encode_map(field.table, item, None) for item in check_list(value, "an array of maps", field.high)]
        return _pack_header(0x90, 0xDC, len(items)) + b"".join(items)
    checked = _decode_value(field, value, tables.MAX_DEPTH)
    return _pack(checked, single=kind in (f.BIASES, f.LOGPROBS))


def _encode_map(table: Table, fields: Mapping[str, Any], kind: str | None) -> bytes:
    unknown = [key for key in fields if key not in table.by_key]
    if unknown:
        raise Malformed(f"{unknown[0]}: unknown key")
    out = [_pack("k") + _pack(kind)] if kind is not None else []
    whole = {each.key: fields.get(each.key, None if each.required else each.default()) for each in table.fields}
    _check_whole(table, whole)
    for field in table.fields:
        value = whole[field.key]
        if value is None and field.required:
            raise Malformed(f"{field.key}: missing")
        if not field.always and (value is None or value == field.default()):
            continue
        try:
            out.append(_pack(field.key) + _encode_value(field, value))
        except Malformed as wrong:
            raise Malformed(f"{field.key}: {wrong}") from None
    return _pack_header(0x80, 0xDE, len(out)) + b"".join(out)


def encode(kind: str, fields: Mapping[str, Any]) -> bytes:
    """The bytes of a message. `Malformed` when it is one that nobody would take."""
    table = tables.KINDS[kind]
    try:
        data = _encode_map(table, fields, kind)
        if len(data) > table.max_bytes:
            raise Malformed(f"{len(data)} bytes; at most {table.max_bytes} are allowed")
    except Malformed as wrong:
        raise Malformed(f"{kind}: {wrong}") from None
    return data
