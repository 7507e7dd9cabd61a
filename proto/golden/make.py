#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes messages.json: the golden vectors of the protocol.

The encoder here is deliberately its own, thirty lines of the msgpack specification, so that the C codec is checked
against something that shares no code with it. A vector is {name, hex, message}: `message` is the map as JSON, a byte
string standing as {"hex": "…"} and an integer above 2⁵³ as {"int": "…"}; a log probability is a float 32 and every other number with a decimal point a float 64.
`canonical` false marks a vector that decodes, but that Quern itself would write otherwise. `error` marks one that
must be refused, with the text."""

import json
import pathlib
import re
import struct

HISTOGRAMS = re.findall(r"ROW\(\w+, (\w+), ", (pathlib.Path(__file__).parents[1] / "histograms.h").read_text())
GAUGES = re.findall(r"ROW\(\w+, (\w+), ", (pathlib.Path(__file__).parents[1] / "gauges.h").read_text())


class Bin(bytes):
    pass


class F32(float):
    pass


class Raw(bytes):
    """Bytes that stand in the message as they are."""


class Pairs(list):
    """A map as a list of pairs, for keys that come twice."""


def head(n, fix, fix_limit, *wide):
    if fix is not None and n < fix_limit:
        return bytes([fix | n])
    for tag, fmt in wide:
        if n < 1 << 8 * struct.calcsize(fmt):
            return bytes([tag]) + struct.pack(">" + fmt, n)
    raise ValueError(n)


def pack(v):
    if isinstance(v, Raw):
        return bytes(v)
    if v is None:
        return b"\xc0"
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int) and v >= 0:
        return head(v, 0, 128, (0xCC, "B"), (0xCD, "H"), (0xCE, "I"), (0xCF, "Q"))
    if isinstance(v, int):
        if v >= -32:
            return struct.pack("b", v)
        for tag, fmt in ((0xD0, "b"), (0xD1, "h"), (0xD2, "i"), (0xD3, "q")):
            try:
                return bytes([tag]) + struct.pack(">" + fmt, v)
            except struct.error:
                pass
    if isinstance(v, F32):
        return b"\xca" + struct.pack(">f", v)
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, Bin):
        return head(len(v), None, 0, (0xC4, "B"), (0xC5, "H"), (0xC6, "I")) + v
    if isinstance(v, str):
        raw = v.encode()
        return head(len(raw), 0xA0, 32, (0xD9, "B"), (0xDA, "H"), (0xDB, "I")) + raw
    if isinstance(v, dict):
        v = Pairs(v.items())
    if isinstance(v, Pairs):
        return head(len(v), 0x80, 16, (0xDE, "H"), (0xDF, "I")) + b"".join(pack(k) + pack(x) for k, x in v)
    return head(len(v), 0x90, 16, (0xDC, "H"), (0xDD, "I")) + b"".join(map(pack, v))


def as_json(v):
    if isinstance(v, bytes):
        return {"hex": v.hex()}
    if isinstance(v, dict):
        return {k: as_json(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [as_json(x) for x in v]
    if isinstance(v, int) and v > 2**53:
        return {"int": str(v)}
    return float(v) if isinstance(v, F32) else v


SESSION = Bin(bytes(range(16)))
ID = Bin(bytes(range(0xF0, 0x100)))
DIGEST = Bin(bytes.fromhex("9e107d9d372bb6826bd81d3542a419d6"))
EPOCH = [7, 1]
FIXED = {"max_tokens": 256, "temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.0,
         "presence_penalty": 0.0, "frequency_penalty": 0.0}
STOPPED = {"reason": "stop", "stop": "END", "usage": {"prompt_tokens": 9, "output_tokens": 3},
           "timing": {"queue_ms": 0.25, "prefill_ms": 12.5, "decode_ms": 30.0}}
END = {"reason": "length", "limit": "context", "usage": {"prompt_tokens": 9, "output_tokens": 3},
       "timing": {"queue_ms": 0.25, "prefill_ms": 12.5, "prepare_ms": 1.5, "wait_ms": 2.0, "lookup_ms": 0.5,
                  "decode_ms": 30.0}}
FAILED = {"reason": "error", "error": "model_error", "text": "no finite logit",
          "usage": {"prompt_tokens": 9, "cached_tokens": 5, "output_tokens": 3},
          "timing": {"queue_ms": 0.0, "prefill_ms": 0.0, "decode_ms": 0.0}}
FRAME = {"k": "frame", "id": ID, "epoch": EPOCH, "seq": 0, "off": 0, "ids": [17], "text": " the"}
LIMITS = {"request_bytes": 4194304, "prompt_ids": 524288, "stops": 16, "stop_bytes": 256, "stop_ids": 64, "logprobs": 20, "logit_bias": 1024, "grammar_bytes": 262144, "max_tokens": 4096,
          "generate_bytes": 4194304}

GOOD = [
    ("hello", {"k": "hello", "proto": [1, 1], "session": SESSION}),
    ("hello with features", {"k": "hello", "proto": [1, 3], "features": ["grammar", "größe"], "session": SESSION}),
    ("join", {"k": "join", "nonce": 2**64 - 1}),
    ("generate, text", {"k": "generate", "id": ID, "prompt": "Once upon a time", **FIXED}),
    ("generate, no limit said", {"k": "generate", "id": ID, "prompt": "Once", **{k: v for k, v in FIXED.items() if k != "max_tokens"}}),
    ("generate, nothing said", {"k": "generate", "id": ID, "prompt": "Hi"}),
    ("generate, ids", {"k": "generate", "id": ID, "prompt": [0, 1, 255, 65536, 2**31 - 1], **FIXED}),
    ("generate, chat", {"k": "generate", "id": ID, "prompt": [
        {"role": "system", "content": ""}, {"role": "user", "content": "Wie groß? 🌾"}], **FIXED}),
    ("generate, tools", {"k": "generate", "id": ID, "prompt": [
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": "", "tool_calls": '[{"id":"a","function":{"name":"rain","arguments":"{}"}}]'},
        {"role": "tool", "content": "no", "name": "rain", "tool_call_id": "a"}],
        "tools": '[{"type":"function","function":{"name":"rain"}}]', **FIXED}),
    ("generate, a thought", {"k": "generate", "id": ID, "prompt": [
        {"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No.", "thought": "größe"}],
        "template_kwargs": '{"enable_thinking":false}', "marks": True, **FIXED}),
    ("generate, every key", {
        "k": "generate", "id": ID, "prompt": "<|x|>", "special": True, "model": "demo", "max_tokens": 1, "fit_context": True,
        "temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.25,
        "presence_penalty": -2.0, "frequency_penalty": 0.5, "repeat_last_n": -1, "top_n_sigma": 1.5, "typical_p": 0.5,
        "xtc_probability": 0.5, "xtc_threshold": 0.25, "dynatemp_range": 0.5, "dynatemp_exponent": 2.0, "dry_multiplier": 0.75,
        "dry_base": 1.5, "dry_allowed_length": 3, "dry_penalty_last_n": 64,
        "logit_bias": [[2, F32(-100.0)], [70000, F32(1.5)]], "logit_bias_text": [{"text": "größe", "bias": -1.5}], "bad_words": ["no", " way"],
        "dry_sequence_breakers": ["\n"], "seed": 0,
        "stop": ["\n", "END"], "stop_ids": [2, 32000], "grammar": "root ::= \"a\"\n", "grammar_kind": "regex", "logprobs": 21, "pieces": True, "priority": -8, "deadline_ms": 1500,
        "on_disconnect": "keep", "keep_s": 30, "cache_salt": "salt", "cache_prompt": False, "tenant": "alice", "request_id": "req_1", "progress": True, "require": ["grammar"],
        "rpm": 60, "tpm": 2**40, "rpd": 1000, "tpd": 10**15, "part": True}),
    ("generate_part", {"k": "generate_part", "id": ID, "total": 4194304, "at": 0, "data": Bin(b"\x83\xa1k")}),
    ("generate_part, the last one of a tenant", {"k": "generate_part", "id": ID, "total": 2**32 - 1, "at": 2**32 - 2, "data": Bin(b"\xff"), "tenant": "größe"}),
    ("generate, a turn that goes on", {"k": "generate", "id": ID, "prompt": [{"role": "assistant", "content": "Once"}],
                                       "continue_turn": True, **FIXED, "require": ["continue_turn"]}),
    ("generate, an end that is not made", {"k": "generate", "id": ID, "prompt": "Once", **FIXED, "ignore_eos": True}),
    ("generate, an end that comes late", {"k": "generate", "id": ID, "prompt": "Once", **FIXED, "min_tokens": 256}),
    ("generate, no thought", {"k": "generate", "id": ID, "prompt": "Once", **FIXED, "thinking_budget": 0}),
    ("generate, a thought with an end", {"k": "generate", "id": ID, "prompt": [{"role": "user", "content": "Hi"}], **FIXED,
                                         "thinking_budget": 1024, "require": ["thinking_budget"]}),
    ("generate, a gap", {"k": "generate", "id": ID, "prompt": "def", "suffix": "return", "files": '[{"filename":"größe","text":""}]', **FIXED}),
    ("generate, a gap at the beginning and the end", {"k": "generate", "id": ID, "prompt": "", "suffix": "", **FIXED}),
    ("generate, no breakers", {"k": "generate", "id": ID, "prompt": "Hi", **FIXED, "dry_sequence_breakers": []}),
    ("generate, any JSON", {"k": "generate", "id": ID, "prompt": "Once", **FIXED, "grammar_kind": "json"}),
    ("generate, a schema", {"k": "generate", "id": ID, "prompt": "Once", **FIXED, "grammar": '{"type":"größe"}', "grammar_kind": "schema"}),
    ("generate, an embedding", {"k": "generate", "id": ID, "prompt": "Once", "embed": True, **{k: v for k, v in FIXED.items() if k != "max_tokens"},
                                "require": ["embed"]}),
    ("generate, a pair to rank", {"k": "generate", "id": ID, "prompt": "größe?", "embed": True, "document": "größe",
                                  **{k: v for k, v in FIXED.items() if k != "max_tokens"}, "require": ["document"]}),
    ("generate, resumed", {"k": "generate", "id": ID, "prompt": "Once", **FIXED, "seed": 42, "require": ["resume"], "output": [5, 70000], "off": 6,
                           "lost": 2, "prompt_digest": DIGEST}),
    ("generate, resumed before its first token", {"k": "generate", "id": ID, "prompt": "Once", **FIXED, "require": ["resume"], "lost": 1}),
    ("cancel", {"k": "cancel", "id": ID}),
    ("cancel to a worker", {"k": "cancel", "session": SESSION, "id": ID}),
    ("replay", {"k": "replay", "id": ID, "epoch": EPOCH, "next": 300}),
    ("attach", {"k": "attach", "session": SESSION, "id": ID, "next": 2**53}),
    ("status", {"k": "status", "ref": 5}),
    ("status, with requests", {"k": "status", "ref": 5, "requests": 1024, "request_id": "req_1"}),
    ("tokenize", {"k": "tokenize", "ref": 6, "model": "demo", "text": "a\0b", "special": True}),
    ("tokenize, messages", {"k": "tokenize", "ref": 7, "messages": [{"role": "user", "content": "Hi"}], "tools": "[]",
                            "template_kwargs": "{}", "continue_turn": True, "pieces": True, "written": True}),
    ("detokenize", {"k": "detokenize", "ref": 6, "model": "demo", "ids": [1, 70000], "special": True}),
    ("prefixes", {"k": "prefixes", "ref": 8, "boot": 7, "next": 70000, "secret": "shared by the fleet"}),
    ("prefixes, from the beginning", {"k": "prefixes", "secret": ""}),
    ("prefixes, a part", {"k": "prefixes", "ref": 9, "boot": 7, "next": 1, "at": 8193, "secret": "s"}),
    ("tenants", {"k": "tenants", "ref": 8, "tenants": [
        {"id": SESSION, "requests": 1}, {"id": ID, "requests": 8, "tokens": 2**53, "rpm": 0.5, "tpm": 1e15, "rpd": 1.25, "tpd": 1000.5}]}),
    ("tenants, none", {"k": "tenants"}),
    ("ping", {"k": "ping"}),
    ("ping, with the load", {"k": "ping", "load": True}),
    ("ping, answers taken", {"k": "ping", "ref": 3, "taken": [ID, SESSION]}),
    ("bye", {"k": "bye"}),
    ("hello_ok", {"k": "hello_ok", "proto": [1, 1], "boot": 7, "stream": ["ipc:///run/quern/stream"], "limits": LIMITS,
                  "lease_ms": 5000, "models": [
                      {"name": "demo", "digest": DIGEST, "context": 2048, "workers": 2, "chat": True, "embedding": 576},
                      {"name": "ranker", "digest": DIGEST, "context": 2048, "embedding": 2, "ranks": True},
                      {"name": "other", "digest": DIGEST, "context": 131072}]}),
    ("welcome", {"k": "welcome", "nonce": 1}),
    ("accepted", {"k": "accepted", "id": ID, "epoch": [7, 0], "seed": 2**63, "again": True}),
    ("accepted, of a tenant with limits", {"k": "accepted", "id": ID, "epoch": [7, 0], "seed": 1, "limit_requests": 60, "remaining_requests": 59,
        "reset_requests_ms": 1000, "limit_tokens": 2**40, "remaining_tokens": 1, "reset_tokens_ms": 86400000}),
    ("error of a request", {"k": "error", "id": ID, "error": "overloaded", "text": "64 requests are queued", "retry_after_ms": 400}),
    ("error, a limit is reached", {"k": "error", "id": ID, "error": "overloaded", "text": "the limit is reached", "retry_after_ms": 900,
        "limit_requests": 60, "reset_requests_ms": 60000}),
    ("error of a status", {"k": "error", "ref": 5, "error": "hello_required", "text": "hello first"}),
    ("error that says what it answers", {"k": "error", "id": ID, "error": "unknown_request", "text": "it ended long ago", "of": "cancel"}),
    ("cancel_ok", {"k": "cancel_ok", "id": ID}),
    ("replay_ok", {"k": "replay_ok", "id": ID, "epoch": EPOCH, "from": 0, "next": 1, "done": True,
                   "frames": [Bin(pack(FRAME))]}),
    ("replay_ok, nothing yet", {"k": "replay_ok", "id": ID, "epoch": EPOCH, "from": 0, "next": 0, "done": True}),
    ("attach_ok", {"k": "attach_ok", "id": ID, "epoch": EPOCH, "next": 4}),
    ("attach_ok, of a resumed request", {"k": "attach_ok", "id": ID, "epoch": EPOCH, "next": 4, "from": 3, "off": 2**53}),
    ("status_ok", {"k": "status_ok", "ref": 5, "boot": 7, "draining": True, "version": "0.1.0", "sessions": 1, "queued": 2,
                   "running": 3, "admitted": 4, "ended": 5, "rejected": 6, "tokens": 2**40, "journal_bytes": 7, "journal_limit": 2**28, "journal_waiting": 8, "max_tokens": 4096, "uptime_s": 86401,
                   "supervisor_pid": 40, "broker_pid": 41, "gateway_pid": 42, "workers": [
                       {"name": "worker-0", "device": "cpu avx2, 2 threads", "model": "demo",
                        "device_number": 3, "device_uuid": "GPU-0123", "device_driver": "580.65.06", "device_capability": 90,
                        "aliases": ["gpt-4o", "größe"], "chat": True, "tools": "object", "thinks": True, "dialect": '{"calls":{"arguments":"json"}}', "digest": "9e107d9d372bb6826bd81d3542a419d6", "arithmetic": "cpu avx2 kv=f16 weights=file", "choices": "7 launches", "sampling": "temperature=0.6:model", "state": "ready", "pid": 77,
                        "incarnation": 1, "restarts": 2, "slots": 16, "context": 4096, "embedding": 576, "ranks": True, "steps": 9,
                        **{gauge: 100 * i + 1 for i, gauge in enumerate(GAUGES)},
                        **{name: [2**40 + i, *range(i, i + 16)] for i, name in enumerate(HISTOGRAMS)},
                        "tokens_per_s": 12.5, "hit_rate": 0.25},
                       {"name": "worker-1", "state": "failed", "reason": "no such file"}]}),
    ("status_ok, with requests", {"k": "status_ok", "ref": 5, "boot": 7, "requests": [
        {"id": "00ff", "request_id": "req_1", "state": "running", "worker": "worker-0", "model": "demo", "age_ms": 1500, "tokens": 12, "moves": 1},
        {"id": "0100", "state": "queued"}]}),
    ("tokenize_ok", {"k": "tokenize_ok", "ref": 6, "ids": [1, 2]}),
    ("tokenize_ok, empty", {"k": "tokenize_ok", "ids": []}),
    ("tokenize_ok, written", {"k": "tokenize_ok", "ids": [5], "text": "<|user|>Hi"}),
    ("trace", {"k": "trace", "ref": 7, "worker": "worker-0", "from": 2**53, "most": 1024}),
    ("trace, from now on", {"k": "trace", "ref": 7, "worker": "größe"}),
    ("trace_ok", {"k": "trace_ok", "ref": 7, "incarnation": 2, "next": 12, "lost": 3, "records": [
        {"what": "step", "at_us": 0, "n": 2**64 - 1, "decode_rows": 3, "prefill_rows": 128, "padding_rows": 1, "ids": 4,
         "total_us": 4600, "embed_us": 12, "layers_us": 4321, "sample_us": 210},
        {"what": "admitted", "at_us": 17, "n": 250, "session": SESSION, "id": ID},
        {"what": "given_back", "at_us": 17, "n": 8, "session": SESSION, "id": ID},
        {"what": "end", "at_us": 18, "n": 9, "id": ID, "request_id": "req_1", "reason": "length"}]}),
    ("trace_ok, nothing new", {"k": "trace_ok", "ref": 7, "incarnation": 2, "next": 12}),
    ("profile", {"k": "profile", "ref": 7, "worker": "worker-0", "run": 2**64 - 1, "steps": 1000}),
    ("profile_ok", {"k": "profile_ok", "ref": 7, "done": True, "steps": 16, "bandwidth": 2**42, "kernels": [
        {"name": "q k v Q8_0", "n": 32, "ns": 2**63, "bytes": 5, "macs": 6},
        {"name": "attention", "n": 1, "blocks": 1, "threads": 2, "shared_bytes": 3, "loaded": 4, "sectors": 5, "asked": 6, "passes": 7, "conflicts": 8}]}),
    ("profile_ok, not yet", {"k": "profile_ok", "ref": 7, "steps": 3}),
    ("trim", {"k": "trim", "ref": 7, "worker": "worker-0", "run": 2**64 - 1, "prefixes": True}),
    ("trim_ok", {"k": "trim_ok", "ref": 7, "blocks": 12, "resident_before": 2**33, "resident_after": 2**32,
                 "device_free_before": 5, "device_free_after": 6,
                 "given": [{"kind": "kv", "bytes": 2**32}, {"kind": "heap"}]}),
    ("detokenize_ok", {"k": "detokenize_ok", "ref": 6, "text": "größe\ufffd"}),
    ("prefixes_ok", {"k": "prefixes_ok", "ref": 8, "boot": 7, "next": 70002, "added": Bin(bytes(range(8))),
                     "dropped": Bin(bytes(range(8, 24)))}),
    ("prefixes_ok, the first part", {"k": "prefixes_ok", "ref": 9, "boot": 7, "next": 1, "at": 8193, "pieces": 20000, "begins": True, "space": "c00ff",
                                     "added": Bin(bytes(16))}),
    ("tenants_ok", {"k": "tenants_ok", "ref": 8, "tenants": [{"id": ID, "tokens": 70000, "tpd": 0.25, "gateways": 2}]}),
    ("pong", {"k": "pong", "ref": 9}),
    ("pong, with the load", {"k": "pong", "load": 70000, "own": 300, "slots": 64, "kept": 1000, "draining": True}),
    ("bye_ok", {"k": "bye_ok"}),
    ("end, by a stop string", {"k": "end", "id": ID, "epoch": EPOCH, "count": 3, "end": STOPPED}),
    ("end", {"k": "end", "id": ID, "epoch": EPOCH, "count": 3, "end": END}),
    ("end, with drafts", {"k": "end", "id": ID, "epoch": EPOCH, "count": 3, "end": {
        **STOPPED, "usage": {"prompt_tokens": 9, "output_tokens": 3, "drafted_tokens": 300, "accepted_tokens": 2}}}),
    ("end, of what killed three workers", {"k": "end", "id": ID, "epoch": EPOCH, "count": 3, "end": {
        "reason": "error", "error": "worker_lost", "text": "it died", "lost": 3, "usage": FAILED["usage"], "timing": FAILED["timing"]}}),
    ("frame", {**FRAME, "wseq": 1}),
    ("frame, the first one", {**FRAME, "prompt_digest": DIGEST, "wseq": 1}),
    ("frame, several ids", {"k": "frame", "id": ID, "epoch": EPOCH, "seq": 1, "off": 4, "ids": [300, 70000], "text": "größe",
                            "wseq": 2}),
    ("frame, logprobs", {"k": "frame", "id": ID, "epoch": EPOCH, "seq": 1, "off": 4, "ids": [300, 301], "text": "",
                         "logprobs": [[[300, F32(-0.5)], [5, F32(-1.25)]], [[301, F32(-2.0)], [6, F32(-0.125)]]], "wseq": 3}),
    ("frame, pieces", {"k": "frame", "id": ID, "epoch": EPOCH, "seq": 1, "off": 4, "ids": [300], "text": "",
                       "logprobs": [[[300, F32(-0.5)], [5, F32(-1.25)]]], "pieces": [Bin(b" the"), Bin(b"\xf0\x9f")],
                       "wseq": 3}),
    ("frame, last", {"k": "frame", "id": ID, "epoch": EPOCH, "seq": 3, "off": 10, "ids": [], "text": "tail", "wseq": 4, "end": END}),
    ("frame, an embedding", {"k": "frame", "id": ID, "epoch": EPOCH, "seq": 0, "off": 0, "ids": [], "text": "",
                             "embedding": Bin(struct.pack("<4f", 0.5, -0.5, 0.5, -0.5)), "wseq": 4, "end": {**{k: v for k, v in END.items() if k != "limit"}, "reason": "stop"}}),
    ("frame, failed", {"k": "frame", "id": ID, "epoch": EPOCH, "seq": 3, "off": 10, "ids": [], "text": "", "end": FAILED}),
    ("progress", {"k": "progress", "id": ID, "epoch": EPOCH, "total": 5000, "cached": 32, "read": 4096}),
    ("progress, nothing yet", {"k": "progress", "id": ID, "epoch": EPOCH, "total": 1}),
    ("register", {"k": "register", "proto": [1, 1], "features": ["f"], "name": "worker-0", "incarnation": 1, "pid": 77, "slots": 16,
                  "stream": "ipc:///run/quern/worker-0-1", "model": "demo", "digest": DIGEST, "context": 2048, "chat": True, "tools": "object", "thinks": True, "dialect": '{"calls":{"arguments":"json"}}', "sampling": "temperature=0.6:model",
                  "kv_blocks": 512, "max_prompt": 2047, "embedding": 576, "ranks": True, "device": "cpu", "device_number": 3, "device_uuid": "GPU-0123",
                  "device_driver": "580.65.06", "device_capability": 90, "arithmetic": "cpu avx2 kv=f16 weights=file", "choices": "7 launches", "wseq": 5, "acked": 3}),
    ("register, what it needs", {"k": "register", "proto": [1, 1], "name": "worker-0", "incarnation": 1, "pid": 77, "slots": 16,
                                 "stream": "ipc:///run/quern/worker-0-1", "model": "demo", "digest": DIGEST, "context": 2048}),
    ("ready", {"k": "ready", "incarnation": 1}),
    ("heartbeat", {"k": "heartbeat", "ref": 1, "active": 2, "waiting": 3, "kv_free": 4, "wseq": 5, "waiting_tokens": 6}),
    ("heartbeat, draining", {"k": "heartbeat", "ref": 2, "active": 1, "wseq": 7, "draining": True}),
    ("finished", {"k": "finished", "session": SESSION, "id": ID, "epoch": EPOCH, "count": 3, "wseq": 4, "end": FAILED}),
    ("register_ok", {"k": "register_ok", "boot": 7, "subscription": SESSION, "heartbeat_ms": 250}),
    ("assign", {"k": "assign", "session": SESSION, "id": ID, "epoch": EPOCH, "deadline_left_ms": 900, "queue_us": 1500,
                "prompt": "Once", **FIXED, "seed": 42}),
    ("assign, of a client with a key", {"k": "assign", "session": SESSION, "id": ID, "epoch": EPOCH, "cache_space": "c0123t",
                "prompt": "Once", **FIXED, "seed": 42}),
    ("assign, with credit", {"k": "assign", "session": SESSION, "id": ID, "epoch": EPOCH, "credit": 65,
                "most": 4096, "prompt": "Once", **FIXED, "seed": 42, "output": [5], "off": 2}),
    ("assign, resumed", {"k": "assign", "session": SESSION, "id": ID, "epoch": EPOCH, "credit": 65, "prompt": "Once", **FIXED, "seed": 42,
                         "require": ["resume"], "output": [5], "off": 2, "lost": 2, "prompt_digest": DIGEST}),
    ("credit", {"k": "credit", "topics": [Bin(SESSION + ID), Bin(ID + SESSION)], "counts": [128, 2**31 - 1]}),
    ("ack", {"k": "ack", "wseq": 256}),
    ("resend", {"k": "resend", "wseq": 1}),
    ("drain", {"k": "drain"}),
    ("drain, handing over", {"k": "drain", "hand_over": True}),
]

# These decode as well; Quern writes them otherwise.
OTHERWISE = [
    ("k comes last", {"nonce": 3, "k": "join"}),
    ("unknown keys", {"k": "join", "x": {"y": [None, 1.5, Bin(b"z")]}, "nonce": 3, "later": "?"}),
    ("integers for reals", {"k": "generate", "id": ID, "prompt": "Hi", "temperature": 1, "top_p": 1,
                            "logit_bias": [[5, -100], [6, 3]]}),
    ("zeros written out", {"k": "ping", "ref": 0}),
]

GENERATE = {"k": "generate", "id": ID, "prompt": "Hi"}
RESUMED = {**GENERATE, "seed": 1, "require": ["resume"], "output": [5]}
RESUME_UNSAID = 'generate: output, off, lost and prompt_digest: expected with "resume" under require'
PART = {"k": "generate_part", "id": ID, "total": 8, "at": 0, "data": Bin(b"abc")}
BAD = [
    ("a profile of no steps", {"k": "profile", "worker": "w", "run": 1, "steps": 0}, "profile: steps: 0 is out of range 1..1000"),
    ("a trim without a name", {"k": "trim", "worker": "w", "run": 0}, "trim: run: 0 is out of range 1..18446744073709551615"),
    ("a trace of nobody", {"k": "trace", "ref": 7}, "trace: worker: missing"),
    ("a record of nothing", {"k": "trace_ok", "next": 1, "records": [{"what": "stage", "at_us": 1}]},
     "trace_ok: records: item 0: what: unknown value \"stage\""),
    ("a histogram that is too short", {"k": "status_ok", "boot": 7, "workers": [{"name": "w", "state": "ready", "step_rows": [1, 2]}]},
     "status_ok: workers: item 0: step_rows: 2 numbers, not 17"),
    ("a histogram that counts down", {"k": "status_ok", "boot": 7, "workers": [{"name": "w", "state": "ready", "step_rows": [0] * 16 + [-1]}]},
     "status_ok: workers: item 0: step_rows: item 16: expected an integer"),
    ("empty input", Raw(b""), "an empty message"),
    ("not a map", [1], "not a msgpack map"),
    ("a byte that msgpack never uses", Raw(b"\xc1"), "not a msgpack map"),
    ("no kind", {"nonce": 1}, "k: missing"),
    ("the kind is a number", {"k": 1}, "k: expected a text"),
    ("an unknown kind", {"k": "grind"}, 'unknown kind "grind"'),
    ("bytes after the message", Raw(pack({"k": "bye"}) + b"\0"), "bye: 1 bytes follow the message"),
    ("cut in the middle", Raw(pack(FRAME)[:-1]), "frame: text: truncated, or not msgpack"),
    ("a key is missing", {"k": "join"}, "join: nonce: missing"),
    ("a known key comes twice", Pairs([("k", "join"), ("nonce", 1), ("nonce", 1)]), "join: nonce: duplicate key"),
    ("the kind comes twice", Pairs([("k", "bye"), ("k", "bye")]), "bye: k: duplicate key"),
    ("a text for a number", {"k": "join", "nonce": "1"}, "join: nonce: expected an integer"),
    ("a real for an integer", {**GENERATE, "max_tokens": 5.0}, "generate: max_tokens: expected an integer"),
    ("a part of nothing", {**PART, "data": Bin(b"")}, "generate_part: data: is empty"),
    ("a part beyond the end", {**PART, "at": 6}, "generate_part: data: exceeds the 8 bytes of total"),
    ("a part that begins beyond the end", {**PART, "at": 9}, "generate_part: data: exceeds the 8 bytes of total"),
    ("a part of text", {**PART, "data": "abc"}, "generate_part: data: expected a byte string"),
    ("a part without a length", {k: v for k, v in PART.items() if k != "total"}, "generate_part: total: missing"),
    ("limits of nobody", {**GENERATE, "rpm": 1}, "generate: rpm, tpm, rpd and tpd: expected with tenant only"),
    ("a limit that is too large", {**GENERATE, "tenant": "a", "tpd": 10**15 + 1}, "generate: tpd: 1000000000000001 is out of range 0..1000000000000000"),
    ("a request's name with a blank", {**GENERATE, "request_id": "a b"}, "generate: request_id: expected printable ASCII without blanks"),
    ("a request's name of two lines", {**GENERATE, "request_id": "a\nb"}, "generate: request_id: control character at byte 1"),
    ("no tokens asked for", {**GENERATE, "max_tokens": 0}, "generate: max_tokens: 0 is out of range 1..2147483647"),
    ("a negative counter", {"k": "ack", "wseq": -1}, "ack: wseq: -1 is out of range 0..9007199254740992"),
    ("temperature is NaN", {**GENERATE, "temperature": float("nan")}, "generate: temperature: nan is out of range 0..100"),
    ("temperature is infinite", {**GENERATE, "temperature": float("inf")}, "generate: temperature: inf is out of range 0..100"),
    ("top_p is above one", {**GENERATE, "top_p": 1.5}, "generate: top_p: 1.5 is out of range 0..1"),
    ("a repetition penalty that would overflow", {**GENERATE, "repetition_penalty": 1e-38},
     "generate: repetition_penalty: 1e-38 is out of range 0.01..100"),
    ("a presence penalty out of range", {**GENERATE, "presence_penalty": -2.5},
     "generate: presence_penalty: -2.5 is out of range -2..2"),
    ("a bias out of range", {**GENERATE, "logit_bias": [[1, 1.0], [2, 100.5]]},
     "generate: logit_bias: item 1: 100.5 is out of range -100..100"),
    ("a bias that is NaN", {**GENERATE, "logit_bias": [[1, float("nan")]]},
     "generate: logit_bias: item 0: nan is out of range -100..100"),
    ("a window below none", {**GENERATE, "repeat_last_n": -2}, "generate: repeat_last_n: -2 is out of range -1..2147483647"),
    ("an empty bad word", {**GENERATE, "bad_words": ["a", ""]}, "generate: bad_words: item 1: is empty"),
    ("a bias of a text that is not finite", {**GENERATE, "logit_bias_text": [{"text": "a", "bias": float("-inf")}]},
     "generate: logit_bias_text: item 0: bias: -inf is out of range -100..100"),
    ("biases as a map", {**GENERATE, "logit_bias": {"1": 1.0}}, "generate: logit_bias: expected pairs of id and bias"),
    ("a bias without an id", {**GENERATE, "logit_bias": [[1.0]]}, "generate: logit_bias: item 0: expected pairs of id and bias"),
    ("too many biases", {**GENERATE, "logit_bias": [[1, 1]] * 1025}, "generate: logit_bias: 1025 items; at most 1024 are allowed"),
    ("priority out of range", {**GENERATE, "priority": 9}, "generate: priority: 9 is out of range -8..8"),
    ("an empty prompt", {**GENERATE, "prompt": ""}, "generate: prompt: is empty"),
    ("an empty list of messages", {**GENERATE, "prompt": []}, "generate: prompt: is empty"),
    ("a prompt of another type", {**GENERATE, "prompt": 5},
     "generate: prompt: expected a text, an array of token ids, or an array of messages"),
    ("a prompt that is not UTF-8", {**GENERATE, "prompt": Raw(b"\xa3a\xc3(")}, "generate: prompt: not UTF-8 at byte 1"),
    ("a negative token id", {**GENERATE, "prompt": [1, -1]},
     "generate: prompt: expected token ids (integers from 0 to 2147483647)"),
    ("a message without content", {**GENERATE, "prompt": [{"role": "user", "content": "x"}, {"role": "user"}]},
     "generate: prompt: message 1: content: missing"),
    ("too many stop strings", {**GENERATE, "stop": ["x"] * 17}, "generate: stop: 17 items; at most 16 are allowed"),
    ("an empty stop string", {**GENERATE, "stop": ["x", ""]}, "generate: stop: item 1: is empty"),
    ("a stop string too long", {**GENERATE, "stop": ["x" * 257]}, "generate: stop: item 0: 257 bytes; at most 256 are allowed"),
    ("tools beside a text", {**GENERATE, "tools": "[]"}, "generate: tools: expected with messages only"),
    ("a gap beside ids", {**GENERATE, "prompt": [1], "suffix": "x"}, "generate: suffix: expected with a text, and without embed"),
    ("files without a gap", {**GENERATE, "files": "[]"}, "generate: files: expected with suffix only"),
    ("marks of a text", {**GENERATE, "marks": True}, "generate: template_kwargs and marks: expected with messages only"),
    ("a text that goes on", {**GENERATE, "continue_turn": True}, "generate: continue_turn: expected with messages only"),
    ("a grammar that may not end", {**GENERATE, "ignore_eos": True, "grammar": "root ::= \"a\""},
     "generate: ignore_eos: not supported together with a grammar, which ends the output"),
    ("a grammar that may not end yet", {**GENERATE, "min_tokens": 1, "grammar_kind": "json"},
     "generate: min_tokens: not supported together with a grammar, which ends the output"),
    ("a thought of an embedding", {**GENERATE, "thinking_budget": 0, "embed": True},
     "generate: thinking_budget: not supported with embed, which generates no tokens"),
    ("more tokens than there may be", {**GENERATE, "min_tokens": 5, "max_tokens": 4}, "generate: min_tokens: 5 is above max_tokens (4)"),
    ("an embedding of messages", {**GENERATE, "prompt": [{"role": "user", "content": "x"}], "embed": True},
     "generate: embed: expected with a text or token ids, not messages"),
    ("an embedding and tokens", {**GENERATE, "max_tokens": 1, "embed": True},
     "generate: max_tokens: not supported with embed, which generates no tokens"),
    ("an embedding and stops", {**GENERATE, "stop_ids": [1], "embed": True},
     "generate: stop and stop_ids: not supported with embed, which generates no tokens"),
    ("an embedding and a grammar", {**GENERATE, "grammar_kind": "json", "embed": True},
     "generate: grammar: not supported with embed, which generates no tokens"),
    ("a document without embed", {**GENERATE, "document": "x"}, "generate: document: expected with a text and embed"),
    ("a document beside ids", {"k": "generate", "id": ID, "prompt": [1], "embed": True, "document": "x"},
     "generate: document: expected with a text and embed"),
    ("an empty document", {"k": "generate", "id": ID, "prompt": "x", "embed": True, "document": ""}, "generate: document: is empty"),
    ("half a number of an embedding", {**FRAME, "embedding": Bin(b"123456")}, "frame: embedding: 6 bytes are not a whole number of 32-bit floats"),
    ("too large an embedding", {**FRAME, "embedding": Bin(bytes(4 * 32769))}, "frame: embedding: 32769 items; at most 32768 are allowed"),
    ("an embedding that is a text", {**FRAME, "embedding": "1234"}, "frame: embedding: expected a byte string"),
    ("an output without its feature", {**GENERATE, "seed": 1, "output": [5]}, RESUME_UNSAID),
    ("a digest without the feature", {**GENERATE, "prompt_digest": DIGEST, "require": ["embed"]}, RESUME_UNSAID),
    ("deaths without the feature", {**GENERATE, "lost": 1}, RESUME_UNSAID),
    ("an output of an embedding", {**RESUMED, "embed": True},
     "generate: output, off, lost and prompt_digest: not supported with embed, which generates no tokens"),
    ("bytes of no output", {**GENERATE, "require": ["resume"], "off": 1}, "generate: off: expected with output only"),
    ("an output without its seed", {**GENERATE, "require": ["resume"], "output": [5]}, "generate: seed: required with output"),
    ("more output than there may be", {**RESUMED, "output": [5, 6], "max_tokens": 1},
     "generate: output: 2 ids are more than max_tokens (1)"),
    ("an output of negative ids", {**RESUMED, "output": [-1]}, "generate: output: expected token ids (integers from 0 to 2147483647)"),
    ("a third death", {**RESUMED, "lost": 3}, "generate: lost: 3 is out of range 0..2"),
    ("half a digest", {**RESUMED, "prompt_digest": Bin(bytes(8))}, "generate: prompt_digest: expected a byte string of 16 bytes"),
    ("too many logprobs", {**GENERATE, "logprobs": 22}, "generate: logprobs: 22 is out of range 0..21"),
    ("a grammar that is too long", {**GENERATE, "grammar": "x" * 262145},
     "generate: grammar: 262145 bytes; at most 262144 are allowed"),
    ("an unknown kind of grammar", {**GENERATE, "grammar": "x", "grammar_kind": "lark"},
     'generate: grammar_kind: unknown value "lark"'),
    ("an unknown policy", {**GENERATE, "on_disconnect": "wait"}, 'generate: on_disconnect: unknown value "wait"'),
    ("an id of 15 bytes", {"k": "cancel", "id": Bin(b"x" * 15)}, "cancel: id: expected a byte string of 16 bytes"),
    ("an id that is a text", {"k": "cancel", "id": "x" * 16}, "cancel: id: expected a byte string of 16 bytes"),
    ("versions upside down", {"k": "hello", "proto": [2, 1], "session": SESSION}, "hello: proto: expected [min, max]"),
    ("a control character in a name", {"k": "tokenize", "model": "\x1b[2J", "text": ""},
     "tokenize: model: control character at byte 0"),
    ("a name too long", {"k": "tokenize", "model": "m" * 129, "text": ""}, "tokenize: model: 129 bytes; at most 128 are allowed"),
    ("an error of nothing", {"k": "error", "error": "internal", "text": "", "of": "none"}, 'error: of: unknown value "none"'),
    ("a limit of what was not cut", {"k": "end", "id": ID, "epoch": EPOCH, "count": 0, "end": {**STOPPED, "limit": "pool"}},
     "end: end: limit: expected with the reason length only"),
    ("a limit that is none", {"k": "end", "id": ID, "epoch": EPOCH, "count": 0, "end": {**END, "limit": "none"}},
     'end: end: limit: unknown value "none"'),
    ("more accepted than drafted", {"k": "end", "id": ID, "epoch": EPOCH, "count": 0, "end": {
        **STOPPED, "usage": {"prompt_tokens": 9, "output_tokens": 3, "drafted_tokens": 1, "accepted_tokens": 2}}},
     "end: end: usage: accepted_tokens: more than drafted_tokens"),
    ("tenants in no order", {"k": "tenants", "tenants": [{"id": ID}, {"id": SESSION}]}, "tenants: tenants: expected in ascending order of ids"),
    ("a tenant twice", {"k": "tenants", "tenants": [{"id": ID}, {"id": ID}]}, "tenants: tenants: expected in ascending order of ids"),
    ("a tenant that used more than there is", {"k": "tenants", "tenants": [{"id": ID, "rpm": 2e18}]}, "tenants: tenants: item 0: rpm: 2e+18 is out of range 0..1e+18"),
    ("credit for somebody else", {"k": "credit", "topics": [Bin(SESSION)], "counts": [1]}, "credit: topics: expected 32 bytes each"),
    ("credit without a count", {"k": "credit", "topics": [Bin(SESSION + ID)], "counts": []}, "credit: counts: expected as many as topics"),
    ("the reason error without one", {"k": "end", "id": ID, "epoch": EPOCH, "count": 0, "end": {**END, "reason": "error"}},
     "end: end: error: expected with the reason error, and only with it"),
    ("an error without the reason", {"k": "end", "id": ID, "epoch": EPOCH, "count": 0, "end": {**END, "error": "internal"}},
     "end: end: error: expected with the reason error, and only with it"),
    ("logprobs for another number of ids", {**FRAME, "logprobs": [[[1, F32(0)]], [[1, F32(0)]]]},
     "frame: logprobs: 2 rows for 1 ids"),
    ("logprobs of uneven width", {**FRAME, "ids": [1, 2], "logprobs": [[[1, F32(0)]], [[1, F32(0)], [2, F32(0)]]]},
     "frame: logprobs: expected as many entries for each id"),
    ("pieces of another number of log probabilities", {**FRAME, "logprobs": [[[1, F32(0)]]], "pieces": [Bin(b"a"), Bin(b"b")]},
     "frame: pieces: 2 for 1 log probabilities"),
    ("a piece too long", {**FRAME, "logprobs": [[[1, F32(0)]]], "pieces": [Bin(b"a" * 257)]},
     "frame: pieces: item 0: 257 bytes; at most 256 are allowed"),
    ("nothing to tokenize", {"k": "tokenize", "ref": 1}, "tokenize: expected either text or messages"),
    ("a text and messages", {"k": "tokenize", "text": "", "messages": [{"role": "user", "content": "Hi"}]},
     "tokenize: expected either text or messages"),
    ("messages without special ids", {"k": "tokenize", "messages": [{"role": "user", "content": "Hi"}], "bare": True},
     "tokenize: special and bare: expected with a text only"),
    ("a text with tools", {"k": "tokenize", "text": "", "tools": "[]"},
     "tokenize: tools, template_kwargs, continue_turn and written: expected with messages only"),
    ("an array longer than the message", {"k": "tokenize_ok", "ids": Raw(b"\xdd\xff\xff\xff\xff")},
     "tokenize_ok: ids: truncated, or not msgpack"),
    ("nine containers deep", {"k": "bye", "x": [[[[[[[[1]]]]]]]]}, "bye: x: truncated, too deep, or not msgpack"),
    ("97 keys", Pairs([("k", "bye")] + [(f"x{i}", 0) for i in range(96)]), "97 keys; at most 96 are allowed"),
]


def main():
    vectors = [{"name": n, "hex": pack(m).hex(), "message": as_json(m)} for n, m in GOOD]
    vectors += [{"name": n, "hex": pack(m).hex(), "message": as_json(m), "canonical": False} for n, m in OTHERWISE]
    vectors += [{"name": n, "hex": pack(m).hex(), "error": e} for n, m, e in BAD]
    lines = ",\n".join(json.dumps(v, ensure_ascii=False) for v in vectors)
    out = pathlib.Path(__file__).with_name("messages.json")
    out.write_text('{"protocol": 1, "vectors": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
