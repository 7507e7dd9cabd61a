# SPDX-License-Identifier: MIT
# fmt: off
# ruff: noqa: E501, I001
"""The protocol as data. Printed by client/python/print_tables.c from proto/; a test holds it to that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from ._field import (
    BIASES, BIN, BINS, BOOL, ENUM, EPOCH, FLOATS, HISTOGRAM, ID, IDS, INT, LOGPROBS, MAP, MAPS, NAME, PROMPT, RANGE, REAL, TEXT, TEXTS,
    Field, Table, table,
)

VERSION_MIN = 1
VERSION_MAX = 1
MAX_KEYS = 96
MAX_DEPTH = 8
MAX_MESSAGES = 4096
MAX_PROMPT_IDS = 4194304
MAX_REQUEST_BYTES = 4194304
MAX_GENERATE_BYTES = 33554432
MAX_TEXT_BYTES = 1024
MAX_FRAME_IDS = 4096
MAX_BYTES = 6881280
ERRORS = ("bad_request", "too_long", "overloaded", "no_worker", "worker_lost", "deadline", "conflict", "unsupported", "unknown_request", "draining", "hello_required", "model_error", "internal",)
REASONS = ("stop", "length", "cancelled", "deadline", "error",)
HISTOGRAMS: dict[str, tuple[float, tuple[float, ...]]] = {
    "step_decode": (1000000000, (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)),
    "step_prefill": (1000000000, (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)),
    "step_mixed": (1000000000, (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)),
    "step_rows": (1, (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048)),
    "computed_rows": (1, (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048)),
    "token_gap": (1000000000, (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)),
    "first_token": (1000000000, (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)),
    "slots_used": (1000, (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 1)),
    "kv_used": (1000, (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 1)),
}

KINDS: dict[str, Table] = {
    "hello": table(
        Field("proto", RANGE, required=True, always=True),
        Field("features", TEXTS, high=32, item_high=128),
        Field("session", ID, required=True, always=True),
        max_bytes=6881280,
    ),
    "join": table(
        Field("nonce", INT, required=True, always=True, high=18446744073709551615),
        max_bytes=6881280,
    ),
    "generate": table(
        Field("id", ID, required=True, always=True),
        Field("prompt", PROMPT, required=True, always=True),
        Field("embed", BOOL, help="text and ids only: the answer is the prompt's embedding, without tokens"),
        Field("special", BOOL, help="text prompts: parse control tokens in the text"),
        Field("suffix", TEXT, optional=True, high=33554432, help="text only, which may be empty then: fill in the gap between it and this text"),
        Field("files", TEXT, high=33554432, help="with `suffix`: JSON, an array of other files, objects with filename and text"),
        Field("document", TEXT, optional=True, high=33554432, help="text with `embed` only, for models that rank: score how well this text answers the prompt"),
        Field("continue_turn", BOOL, help="messages only: continue the last one, which is the assistant's"),
        Field("tools", TEXT, high=33554432, help="messages only: JSON, an array of the tools that the model may call"),
        Field("template_kwargs", TEXT, high=33554432, help="messages only: JSON, an object of variables for the chat template"),
        Field("marks", BOOL, help="messages only: write out the control tokens around calls, thoughts and answers"),
        Field("model", NAME, high=128, help="which model, by name; empty: any"),
        Field("max_tokens", INT, low=1, high=2147483647, help="max tokens to generate; left out: to the end of the context"),
        Field("fit_context", BOOL, help="reduce max_tokens to fit the context instead of rejecting the request"),
        Field("temperature", REAL, optional=True, real_low=0, real_high=100, initial=1, help="divide the logits by this: above 1 varies more; 0 = greedy"),
        Field("top_k", INT, optional=True, high=2147483647, help="sample from the K most likely; 0 = off, 1 = greedy"),
        Field("top_p", REAL, optional=True, real_low=0, real_high=1, initial=1, help="sample from the likeliest tokens whose probabilities sum to P; 1 = off"),
        Field("min_p", REAL, optional=True, real_low=0, real_high=1, help="drop tokens less likely than P times the likeliest; 0 = off"),
        Field("repetition_penalty", REAL, optional=True, real_low=0.01, real_high=100, initial=1, help="make tokens of the prompt and the output less likely; 1 = off"),
        Field("presence_penalty", REAL, optional=True, real_low=-2, real_high=2, help="subtract from the logits of tokens in the output; 0 = off"),
        Field("frequency_penalty", REAL, optional=True, real_low=-2, real_high=2, help="subtract from a logit for each time its token is in the output; 0 = off"),
        Field("repeat_last_n", INT, optional=True, low=-1, high=2147483647, initial=-1, help="penalties look at the last N tokens of prompt and output; -1 = all, 0 = off"),
        Field("top_n_sigma", REAL, optional=True, real_low=-1, real_high=1000, help="drop tokens whose logits are more than N standard deviations below the largest; 0 = off"),
        Field("typical_p", REAL, optional=True, real_low=0, real_high=1, initial=1, help="sample from the tokens nearest to the expected surprise whose probabilities sum to P; 1 = off"),
        Field("xtc_probability", REAL, optional=True, real_low=0, real_high=1, help="exclude the likeliest tokens with this probability (XTC); 0 = off"),
        Field("xtc_threshold", REAL, optional=True, real_low=0, real_high=1, initial=0.1, help="XTC: exclude all tokens at least this likely, except the least likely of them"),
        Field("dynatemp_range", REAL, optional=True, real_low=0, real_high=100, help="vary the temperature by up to this with the entropy; 0 = off"),
        Field("dynatemp_exponent", REAL, optional=True, real_low=0, real_high=100, initial=1, help="the exponent of the entropy, for the dynamic temperature"),
        Field("dry_multiplier", REAL, optional=True, real_low=0, real_high=100, help="make tokens that would continue a repetition less likely (DRY); 0 = off"),
        Field("dry_base", REAL, optional=True, real_low=0, real_high=100, initial=1.75, help="DRY: the penalty grows by this with each token of the repeat; below 1 = off"),
        Field("dry_allowed_length", INT, optional=True, low=1, high=2147483647, initial=2, help="DRY: shorter repeats are allowed"),
        Field("dry_penalty_last_n", INT, optional=True, low=-1, high=2147483647, initial=-1, help="DRY: look at the last N tokens; -1 = all, 0 = off"),
        Field("logit_bias", BIASES, real_low=-100, real_high=100, high=1024, help="added to the logits of these ids, −∞: never; biases of a repeated id add up"),
        Field("logit_bias_text", MAPS, high=1024, help="the same for each id of one of these texts", table=table(Field("text", TEXT, required=True, always=True, high=128), Field("bias", REAL, required=True, always=True, real_low=-100, real_high=100))),
        Field("bad_words", TEXTS, low=1, high=128, item_high=128, help="texts whose ids the output never completes"),
        Field("dry_sequence_breakers", TEXTS, optional=True, low=1, high=32, item_high=128, help="DRY: repeats end at these texts; left out: newline, colon, quotation mark and asterisk"),
        Field("seed", INT, optional=True, high=18446744073709551615, help="same seed, same request: same output; left out: a random one"),
        Field("stop", TEXTS, low=1, high=16, item_high=256, help="end the output before the first of them"),
        Field("stop_ids", IDS, high=64, help="end the output, in addition to the model's own end ids"),
        Field("ignore_eos", BOOL, help="never sample the model's own end ids; not with a grammar"),
        Field("min_tokens", INT, high=2147483647, help="no end id and no stop ends the output before this many tokens; not with a grammar"),
        Field("thinking_budget", INT, optional=True, high=2147483647, help="end a thought after this many tokens, as the chat template ends one; 0 = no thought"),
        Field("grammar", TEXT, high=262144, help="what the output must match, in the form that grammar_kind names"),
        Field("grammar_kind", ENUM, help="gbnf, json (any object, without grammar), schema or regex", names=("gbnf", "json", "schema", "regex",)),
        Field("logprobs", INT, high=21, help="n: log probabilities of the id and of the n − 1 most likely; 0 = none"),
        Field("pieces", BOOL, help="with `logprobs`: frames also carry the bytes of each of those ids"),
        Field("priority", INT, low=-8, high=8, help="higher ones go first"),
        Field("deadline_ms", INT, high=2592000000, help="end this many milliseconds after arrival at the broker; 0 = none"),
        Field("on_disconnect", ENUM, help="what happens to the request when the session leaves", names=("cancel", "keep",)),
        Field("keep_s", INT, high=86400, help="seconds, for `keep`"),
        Field("cache_salt", NAME, high=128, help="cached prefixes are shared with requests of the same salt only; empty: with those of the same tenant"),
        Field("cache_prompt", BOOL, initial=1, help="false: neither look up nor keep the prompt in the prefix cache"),
        Field("tenant", NAME, high=128, help="on whose behalf the client asks: turns and shares are divided among tenants"),
        Field("request_id", NAME, high=128, help="a name for the request in logs and status: printable ASCII without blanks"),
        Field("progress", BOOL, help="report how much of the prompt has been processed"),
        Field("require", TEXTS, high=32, item_high=128, help="features that the request needs"),
        Field("output", IDS, high=4194304, help="ids generated before, elsewhere: continue after them"),
        Field("off", INT, high=9007199254740992, help="with `output`: bytes of its text that the client has"),
        Field("lost", INT, high=2, help="workers that died with the request so far"),
        Field("prompt_digest", ID, help="of the prompt that `output` continues, from one of its frames; left out: any"),
        Field("rpm", INT, high=1000000000000000, help="most requests of the tenant in a minute; 0 = no limit"),
        Field("tpm", INT, high=1000000000000000, help="most tokens of the tenant, of prompts and answers, in a minute"),
        Field("rpd", INT, high=1000000000000000, help="most requests of the tenant in a day"),
        Field("tpd", INT, high=1000000000000000, help="most tokens of the tenant in a day"),
        Field("part", BOOL, help="belongs to a request that was counted: these limits count its tokens only"),
        max_bytes=33554432,
    ),
    "generate_part": table(
        Field("id", ID, required=True, always=True),
        Field("total", INT, required=True, always=True, high=4294967295),
        Field("at", INT, required=True, always=True, high=4294967295),
        Field("data", BIN, required=True, always=True, low=1, high=4194304),
        Field("tenant", NAME, high=128),
        max_bytes=6881280,
    ),
    "cancel": table(
        Field("session", ID),
        Field("id", ID, required=True, always=True),
        max_bytes=6881280,
    ),
    "replay": table(
        Field("id", ID, required=True, always=True),
        Field("epoch", EPOCH),
        Field("next", INT, required=True, always=True, high=9007199254740992),
        max_bytes=6881280,
    ),
    "attach": table(
        Field("session", ID),
        Field("id", ID, required=True, always=True),
        Field("next", INT, high=9007199254740992),
        max_bytes=6881280,
    ),
    "status": table(
        Field("ref", INT, high=18446744073709551615),
        Field("requests", INT, high=1024),
        Field("request_id", NAME, high=128),
        max_bytes=6881280,
    ),
    "tokenize": table(
        Field("ref", INT, high=18446744073709551615),
        Field("model", NAME, high=128),
        Field("text", TEXT, optional=True, high=4194304),
        Field("messages", MAPS, high=4096, table=table(Field("role", NAME, required=True, always=True, high=128), Field("content", TEXT, required=True, always=True, high=33554432), Field("name", NAME, high=128), Field("tool_calls", TEXT, high=33554432), Field("tool_call_id", NAME, high=128), Field("thought", TEXT, high=33554432))),
        Field("tools", TEXT, high=4194304),
        Field("template_kwargs", TEXT, high=4194304),
        Field("continue_turn", BOOL),
        Field("special", BOOL),
        Field("bare", BOOL),
        Field("pieces", BOOL),
        Field("written", BOOL),
        max_bytes=6881280,
    ),
    "detokenize": table(
        Field("ref", INT, high=18446744073709551615),
        Field("model", NAME, high=128),
        Field("ids", IDS, required=True, always=True, high=524288),
        Field("special", BOOL),
        max_bytes=6881280,
    ),
    "prefixes": table(
        Field("ref", INT, high=18446744073709551615),
        Field("boot", INT, high=18446744073709551615),
        Field("next", INT, high=18446744073709551615),
        Field("at", INT, high=4294967295),
        Field("secret", TEXT, required=True, always=True, high=128),
        max_bytes=6881280,
    ),
    "tenants": table(
        Field("ref", INT, high=18446744073709551615),
        Field("tenants", MAPS, high=4096, table=table(Field("id", ID, required=True, always=True), Field("requests", INT, high=9007199254740992), Field("tokens", INT, high=9007199254740992), Field("rpm", REAL, real_low=0, real_high=1e+18), Field("tpm", REAL, real_low=0, real_high=1e+18), Field("rpd", REAL, real_low=0, real_high=1e+18), Field("tpd", REAL, real_low=0, real_high=1e+18), Field("gateways", INT, high=4294967295))),
        max_bytes=6881280,
    ),
    "trace": table(
        Field("ref", INT, high=18446744073709551615),
        Field("worker", NAME, required=True, always=True, high=128),
        Field("from", INT, high=9007199254740992),
        Field("most", INT, high=1024),
        max_bytes=6881280,
    ),
    "profile": table(
        Field("ref", INT, high=18446744073709551615),
        Field("worker", NAME, required=True, always=True, high=128),
        Field("run", INT, required=True, always=True, low=1, high=18446744073709551615),
        Field("steps", INT, required=True, always=True, low=1, high=1000),
        max_bytes=6881280,
    ),
    "trim": table(
        Field("ref", INT, high=18446744073709551615),
        Field("worker", NAME, required=True, always=True, high=128),
        Field("run", INT, required=True, always=True, low=1, high=18446744073709551615),
        Field("prefixes", BOOL),
        max_bytes=6881280,
    ),
    "ping": table(
        Field("ref", INT, high=18446744073709551615),
        Field("taken", BINS, high=4096, item_high=16),
        Field("load", BOOL),
        max_bytes=6881280,
    ),
    "bye": table(
        max_bytes=6881280,
    ),
    "hello_ok": table(
        Field("proto", RANGE, required=True, always=True),
        Field("features", TEXTS, high=32, item_high=128),
        Field("boot", INT, required=True, always=True, high=18446744073709551615),
        Field("stream", TEXTS, required=True, always=True, low=1, high=8, item_high=128),
        Field("limits", MAP, required=True, always=True, table=table(Field("request_bytes", INT, required=True, always=True, high=4294967295), Field("prompt_ids", INT, required=True, always=True, high=4294967295), Field("stops", INT, required=True, always=True, high=4294967295), Field("stop_bytes", INT, required=True, always=True, high=4294967295), Field("stop_ids", INT, required=True, always=True, high=4294967295), Field("logprobs", INT, required=True, always=True, high=4294967295), Field("logit_bias", INT, high=4294967295), Field("grammar_bytes", INT, high=4294967295), Field("max_tokens", INT, high=4294967295), Field("generate_bytes", INT, high=4294967295))),
        Field("lease_ms", INT, required=True, always=True, high=4294967295),
        Field("models", MAPS, high=1024, table=table(Field("name", NAME, required=True, always=True, high=128), Field("digest", ID, required=True, always=True), Field("context", INT, required=True, always=True, high=4294967295), Field("workers", INT, high=4294967295), Field("chat", BOOL), Field("embedding", INT, high=32768), Field("ranks", BOOL))),
        max_bytes=6881280,
    ),
    "welcome": table(
        Field("nonce", INT, required=True, always=True, high=18446744073709551615),
        max_bytes=6881280,
    ),
    "accepted": table(
        Field("id", ID, required=True, always=True),
        Field("epoch", EPOCH, required=True, always=True),
        Field("seed", INT, required=True, always=True, high=18446744073709551615),
        Field("again", BOOL),
        Field("limit_requests", INT, high=18446744073709551615),
        Field("remaining_requests", INT, high=18446744073709551615),
        Field("reset_requests_ms", INT, high=18446744073709551615),
        Field("limit_tokens", INT, high=18446744073709551615),
        Field("remaining_tokens", INT, high=18446744073709551615),
        Field("reset_tokens_ms", INT, high=18446744073709551615),
        max_bytes=6881280,
    ),
    "error": table(
        Field("id", ID, optional=True),
        Field("ref", INT, high=18446744073709551615),
        Field("error", ENUM, required=True, always=True, names=("bad_request", "too_long", "overloaded", "no_worker", "worker_lost", "deadline", "conflict", "unsupported", "unknown_request", "draining", "hello_required", "model_error", "internal",), optional=True),
        Field("text", TEXT, required=True, always=True, high=1024),
        Field("retry_after_ms", INT, high=4294967295),
        Field("of", ENUM, names=("hello", "join", "generate", "generate_part", "cancel", "replay", "attach", "status", "tokenize", "detokenize", "prefixes", "tenants", "trace", "profile", "trim", "ping", "bye", "hello_ok", "welcome", "accepted", "error", "cancel_ok", "replay_ok", "attach_ok", "status_ok", "tokenize_ok", "detokenize_ok", "prefixes_ok", "tenants_ok", "trace_ok", "profile_ok", "trim_ok", "pong", "bye_ok", "end", "frame", "progress", "register", "ready", "heartbeat", "finished", "register_ok", "assign", "credit", "ack", "resend", "drain",), optional=True),
        Field("limit_requests", INT, high=18446744073709551615),
        Field("remaining_requests", INT, high=18446744073709551615),
        Field("reset_requests_ms", INT, high=18446744073709551615),
        Field("limit_tokens", INT, high=18446744073709551615),
        Field("remaining_tokens", INT, high=18446744073709551615),
        Field("reset_tokens_ms", INT, high=18446744073709551615),
        max_bytes=6881280,
    ),
    "cancel_ok": table(
        Field("id", ID, required=True, always=True),
        max_bytes=6881280,
    ),
    "replay_ok": table(
        Field("id", ID, required=True, always=True),
        Field("epoch", EPOCH, required=True, always=True),
        Field("from", INT, required=True, always=True, high=9007199254740992),
        Field("next", INT, required=True, always=True, high=9007199254740992),
        Field("done", BOOL),
        Field("frames", BINS, high=16384, item_high=262144),
        max_bytes=393216,
    ),
    "attach_ok": table(
        Field("id", ID, required=True, always=True),
        Field("epoch", EPOCH, required=True, always=True),
        Field("next", INT, required=True, always=True, high=9007199254740992),
        Field("from", INT, high=9007199254740992),
        Field("off", INT, high=9007199254740992),
        max_bytes=6881280,
    ),
    "status_ok": table(
        Field("ref", INT, high=18446744073709551615),
        Field("boot", INT, required=True, always=True, high=18446744073709551615),
        Field("draining", BOOL),
        Field("version", NAME, high=128),
        Field("sessions", INT, high=4294967295),
        Field("queued", INT, high=4294967295),
        Field("running", INT, high=4294967295),
        Field("admitted", INT, high=18446744073709551615),
        Field("ended", INT, high=18446744073709551615),
        Field("rejected", INT, high=18446744073709551615),
        Field("moved", INT, high=18446744073709551615),
        Field("tokens", INT, high=18446744073709551615),
        Field("journal_bytes", INT, high=18446744073709551615),
        Field("journal_limit", INT, high=18446744073709551615),
        Field("journal_waiting", INT, high=4294967295),
        Field("max_tokens", INT, high=4294967295),
        Field("uptime_s", INT, high=18446744073709551615),
        Field("supervisor_pid", INT, high=4294967295),
        Field("broker_pid", INT, high=4294967295),
        Field("gateway_pid", INT, high=4294967295),
        Field("workers", MAPS, high=1024, table=table(Field("name", NAME, required=True, always=True, high=128), Field("device", NAME, high=128), Field("model", NAME, high=128), Field("device_number", INT, high=4294967295), Field("device_uuid", NAME, high=128), Field("device_driver", NAME, high=128), Field("device_capability", INT, high=4294967295), Field("aliases", TEXTS, low=1, high=8, item_high=128), Field("chat", BOOL), Field("tools", NAME, high=128), Field("thinks", BOOL), Field("dialect", TEXT, high=8192), Field("digest", NAME, high=128), Field("arithmetic", NAME, high=128), Field("choices", NAME, high=128), Field("sampling", TEXT, high=1024), Field("state", ENUM, required=True, always=True, names=("absent", "starting", "loading", "ready", "draining", "failed",)), Field("pid", INT, high=4294967295), Field("incarnation", INT, high=4294967295), Field("restarts", INT, high=4294967295), Field("slots", INT, high=4294967295), Field("context", INT, high=4294967295), Field("embedding", INT, high=4294967295), Field("ranks", BOOL), Field("steps", INT, high=18446744073709551615), Field("active", INT, high=4294967295), Field("waiting", INT, high=4294967295), Field("kv_free", INT, high=4294967295), Field("kv_total", INT, high=4294967295), Field("kv_block_bytes", INT, high=4294967295), Field("kv_cached", INT, high=4294967295), Field("tokens", INT, high=18446744073709551615), Field("cache_hits", INT, high=18446744073709551615), Field("prefill_tokens", INT, high=18446744073709551615), Field("evictions", INT, high=18446744073709551615), Field("restores", INT, high=18446744073709551615), Field("drafted", INT, high=18446744073709551615), Field("accepted", INT, high=18446744073709551615), Field("memory", INT, high=18446744073709551615), Field("memory_kv", INT, high=18446744073709551615), Field("memory_kv_held", INT, high=18446744073709551615), Field("memory_states", INT, high=18446744073709551615), Field("memory_weights", INT, high=18446744073709551615), Field("memory_workspace", INT, high=18446744073709551615), Field("memory_staging", INT, high=18446744073709551615), Field("memory_resident", INT, high=18446744073709551615), Field("memory_peak", INT, high=18446744073709551615), Field("memory_kv_held_peak", INT, high=18446744073709551615), Field("memory_resident_peak", INT, high=18446744073709551615), Field("device_free", INT, high=18446744073709551615), Field("device_total", INT, high=18446744073709551615), Field("launches", INT, high=18446744073709551615), Field("recorded_launches", INT, high=18446744073709551615), Field("refused_recordings", INT, high=18446744073709551615), Field("padding_rows", INT, high=18446744073709551615), Field("library_products", INT, high=18446744073709551615), Field("ids_compared", INT, high=18446744073709551615), Field("ids_different", INT, high=18446744073709551615), Field("step_decode", HISTOGRAM, low=17, high=17), Field("step_prefill", HISTOGRAM, low=17, high=17), Field("step_mixed", HISTOGRAM, low=17, high=17), Field("step_rows", HISTOGRAM, low=17, high=17), Field("computed_rows", HISTOGRAM, low=17, high=17), Field("token_gap", HISTOGRAM, low=17, high=17), Field("first_token", HISTOGRAM, low=17, high=17), Field("slots_used", HISTOGRAM, low=17, high=17), Field("kv_used", HISTOGRAM, low=17, high=17), Field("tokens_per_s", REAL, real_low=0, real_high=1000000000000), Field("hit_rate", REAL, real_low=0, real_high=1000000000000), Field("reason", TEXT, high=1024))),
        Field("requests", MAPS, high=1024, table=table(Field("id", NAME, required=True, always=True, high=128), Field("request_id", NAME, high=128), Field("state", NAME, required=True, always=True, high=128), Field("worker", NAME, high=128), Field("model", NAME, high=128), Field("age_ms", INT, high=18446744073709551615), Field("tokens", INT, high=18446744073709551615), Field("moves", INT, high=4294967295))),
        max_bytes=6881280,
    ),
    "tokenize_ok": table(
        Field("ref", INT, high=18446744073709551615),
        Field("ids", IDS, required=True, always=True, high=4194304),
        Field("pieces", BINS, high=524288, item_high=256),
        Field("text", TEXT, high=4194304),
        max_bytes=6881280,
    ),
    "detokenize_ok": table(
        Field("ref", INT, high=18446744073709551615),
        Field("text", TEXT, required=True, always=True, high=4194304),
        max_bytes=6881280,
    ),
    "prefixes_ok": table(
        Field("ref", INT, high=18446744073709551615),
        Field("boot", INT, required=True, always=True, high=18446744073709551615),
        Field("next", INT, required=True, always=True, high=18446744073709551615),
        Field("at", INT, high=4294967295),
        Field("pieces", INT, high=4294967295),
        Field("begins", BOOL),
        Field("space", TEXT, high=40),
        Field("added", BIN, high=65536),
        Field("dropped", BIN, high=65536),
        max_bytes=6881280,
    ),
    "tenants_ok": table(
        Field("ref", INT, high=18446744073709551615),
        Field("tenants", MAPS, high=4096, table=table(Field("id", ID, required=True, always=True), Field("requests", INT, high=9007199254740992), Field("tokens", INT, high=9007199254740992), Field("rpm", REAL, real_low=0, real_high=1e+18), Field("tpm", REAL, real_low=0, real_high=1e+18), Field("rpd", REAL, real_low=0, real_high=1e+18), Field("tpd", REAL, real_low=0, real_high=1e+18), Field("gateways", INT, high=4294967295))),
        max_bytes=6881280,
    ),
    "trace_ok": table(
        Field("ref", INT, high=18446744073709551615),
        Field("incarnation", INT, high=4294967295),
        Field("next", INT, required=True, always=True, high=9007199254740992),
        Field("lost", INT, high=9007199254740992),
        Field("records", MAPS, high=1024, table=table(Field("what", ENUM, required=True, always=True, names=("step", "admitted", "tokenized", "slot", "prefix", "prefill_begin", "prefill_end", "first_token", "slot_lost", "given_back", "end",)), Field("at_us", INT, required=True, always=True, high=18446744073709551615), Field("n", INT, high=18446744073709551615), Field("decode_rows", INT, high=4294967295), Field("prefill_rows", INT, high=4294967295), Field("padding_rows", INT, high=4294967295), Field("ids", INT, high=4294967295), Field("total_us", INT, high=4294967295), Field("embed_us", INT, high=4294967295), Field("layers_us", INT, high=4294967295), Field("sample_us", INT, high=4294967295), Field("session", ID), Field("id", ID), Field("request_id", NAME, high=128), Field("reason", ENUM, names=("stop", "length", "cancelled", "deadline", "error",)))),
        max_bytes=6881280,
    ),
    "profile_ok": table(
        Field("ref", INT, high=18446744073709551615),
        Field("done", BOOL),
        Field("steps", INT, high=4294967295),
        Field("bandwidth", INT, high=18446744073709551615),
        Field("kernels", MAPS, high=128, table=table(Field("name", NAME, required=True, always=True, high=128), Field("n", INT, high=18446744073709551615), Field("ns", INT, high=18446744073709551615), Field("bytes", INT, high=18446744073709551615), Field("macs", INT, high=18446744073709551615), Field("blocks", INT, high=18446744073709551615), Field("threads", INT, high=18446744073709551615), Field("shared_bytes", INT, high=18446744073709551615), Field("loaded", INT, high=18446744073709551615), Field("sectors", INT, high=18446744073709551615), Field("asked", INT, high=18446744073709551615), Field("passes", INT, high=18446744073709551615), Field("conflicts", INT, high=18446744073709551615))),
        max_bytes=6881280,
    ),
    "trim_ok": table(
        Field("ref", INT, high=18446744073709551615),
        Field("blocks", INT, high=18446744073709551615),
        Field("resident_before", INT, high=18446744073709551615),
        Field("resident_after", INT, high=18446744073709551615),
        Field("device_free_before", INT, high=18446744073709551615),
        Field("device_free_after", INT, high=18446744073709551615),
        Field("given", MAPS, high=16, table=table(Field("kind", NAME, required=True, always=True, high=128), Field("bytes", INT, high=18446744073709551615))),
        max_bytes=6881280,
    ),
    "pong": table(
        Field("ref", INT, high=18446744073709551615),
        Field("load", INT, high=18446744073709551615),
        Field("own", INT, high=18446744073709551615),
        Field("slots", INT, high=4294967295),
        Field("kept", INT, high=1000),
        Field("draining", BOOL),
        max_bytes=6881280,
    ),
    "bye_ok": table(
        max_bytes=6881280,
    ),
    "end": table(
        Field("id", ID, required=True, always=True),
        Field("epoch", EPOCH, required=True, always=True),
        Field("count", INT, required=True, always=True, high=9007199254740992),
        Field("end", MAP, required=True, always=True, table=table(Field("reason", ENUM, required=True, always=True, names=("stop", "length", "cancelled", "deadline", "error",)), Field("error", ENUM, names=("bad_request", "too_long", "overloaded", "no_worker", "worker_lost", "deadline", "conflict", "unsupported", "unknown_request", "draining", "hello_required", "model_error", "internal",), optional=True), Field("text", TEXT, high=1024), Field("stop", TEXT, high=256), Field("limit", ENUM, names=("max_tokens", "context", "pool",), optional=True), Field("lost", INT, high=4294967295), Field("usage", MAP, required=True, always=True, table=table(Field("prompt_tokens", INT, required=True, always=True, high=4294967295), Field("cached_tokens", INT, high=4294967295), Field("output_tokens", INT, required=True, always=True, high=4294967295), Field("drafted_tokens", INT, high=4294967295), Field("accepted_tokens", INT, high=4294967295))), Field("timing", MAP, required=True, always=True, table=table(Field("queue_ms", REAL, always=True, real_low=0, real_high=1e+15), Field("prefill_ms", REAL, always=True, real_low=0, real_high=1e+15), Field("prepare_ms", REAL, real_low=0, real_high=1e+15), Field("wait_ms", REAL, real_low=0, real_high=1e+15), Field("lookup_ms", REAL, real_low=0, real_high=1e+15), Field("decode_ms", REAL, always=True, real_low=0, real_high=1e+15))))),
        max_bytes=6881280,
    ),
    "frame": table(
        Field("id", ID, required=True, always=True),
        Field("epoch", EPOCH, required=True, always=True),
        Field("seq", INT, required=True, always=True, high=9007199254740992),
        Field("off", INT, required=True, always=True, high=9007199254740992),
        Field("ids", IDS, required=True, always=True, high=4096),
        Field("text", TEXT, required=True, always=True, high=262144),
        Field("logprobs", LOGPROBS, high=21),
        Field("pieces", BINS, high=86016, item_high=256),
        Field("embedding", FLOATS, high=32768),
        Field("prompt_digest", ID),
        Field("wseq", INT, high=9007199254740992),
        Field("end", MAP, optional=True, table=table(Field("reason", ENUM, required=True, always=True, names=("stop", "length", "cancelled", "deadline", "error",)), Field("error", ENUM, names=("bad_request", "too_long", "overloaded", "no_worker", "worker_lost", "deadline", "conflict", "unsupported", "unknown_request", "draining", "hello_required", "model_error", "internal",), optional=True), Field("text", TEXT, high=1024), Field("stop", TEXT, high=256), Field("limit", ENUM, names=("max_tokens", "context", "pool",), optional=True), Field("lost", INT, high=4294967295), Field("usage", MAP, required=True, always=True, table=table(Field("prompt_tokens", INT, required=True, always=True, high=4294967295), Field("cached_tokens", INT, high=4294967295), Field("output_tokens", INT, required=True, always=True, high=4294967295), Field("drafted_tokens", INT, high=4294967295), Field("accepted_tokens", INT, high=4294967295))), Field("timing", MAP, required=True, always=True, table=table(Field("queue_ms", REAL, always=True, real_low=0, real_high=1e+15), Field("prefill_ms", REAL, always=True, real_low=0, real_high=1e+15), Field("prepare_ms", REAL, real_low=0, real_high=1e+15), Field("wait_ms", REAL, real_low=0, real_high=1e+15), Field("lookup_ms", REAL, real_low=0, real_high=1e+15), Field("decode_ms", REAL, always=True, real_low=0, real_high=1e+15))))),
        max_bytes=262144,
    ),
    "progress": table(
        Field("id", ID, required=True, always=True),
        Field("epoch", EPOCH, required=True, always=True),
        Field("total", INT, required=True, always=True, high=4294967295),
        Field("cached", INT, high=4294967295),
        Field("read", INT, high=4294967295),
        max_bytes=6881280,
    ),
    "register": table(
        Field("proto", RANGE, required=True, always=True),
        Field("features", TEXTS, high=32, item_high=128),
        Field("name", NAME, required=True, always=True, high=128),
        Field("incarnation", INT, required=True, always=True, high=4294967295),
        Field("pid", INT, required=True, always=True, high=4294967295),
        Field("slots", INT, required=True, always=True, high=4294967295),
        Field("stream", NAME, required=True, always=True, high=128),
        Field("model", NAME, required=True, always=True, high=128),
        Field("digest", ID, required=True, always=True),
        Field("context", INT, required=True, always=True, high=4294967295),
        Field("chat", BOOL),
        Field("tools", NAME, high=128),
        Field("thinks", BOOL),
        Field("dialect", TEXT, high=8192),
        Field("sampling", TEXT, high=1024),
        Field("kv_blocks", INT, high=4294967295),
        Field("max_prompt", INT, high=4294967295),
        Field("embedding", INT, high=32768),
        Field("ranks", BOOL),
        Field("device", NAME, high=128),
        Field("device_number", INT, high=4294967295),
        Field("device_uuid", NAME, high=128),
        Field("device_driver", NAME, high=128),
        Field("device_capability", INT, high=4294967295),
        Field("arithmetic", NAME, high=128),
        Field("choices", NAME, high=128),
        Field("wseq", INT, high=9007199254740992),
        Field("acked", INT, high=9007199254740992),
        max_bytes=6881280,
    ),
    "ready": table(
        Field("incarnation", INT, required=True, always=True, high=4294967295),
        max_bytes=6881280,
    ),
    "heartbeat": table(
        Field("ref", INT, high=18446744073709551615),
        Field("active", INT, high=4294967295),
        Field("waiting", INT, high=4294967295),
        Field("kv_free", INT, high=4294967295),
        Field("wseq", INT, high=9007199254740992),
        Field("waiting_tokens", INT, high=9007199254740992),
        Field("draining", BOOL),
        max_bytes=6881280,
    ),
    "finished": table(
        Field("session", ID, required=True, always=True),
        Field("id", ID, required=True, always=True),
        Field("epoch", EPOCH, required=True, always=True),
        Field("count", INT, required=True, always=True, high=9007199254740992),
        Field("wseq", INT, required=True, always=True, high=9007199254740992),
        Field("end", MAP, required=True, always=True, table=table(Field("reason", ENUM, required=True, always=True, names=("stop", "length", "cancelled", "deadline", "error",)), Field("error", ENUM, names=("bad_request", "too_long", "overloaded", "no_worker", "worker_lost", "deadline", "conflict", "unsupported", "unknown_request", "draining", "hello_required", "model_error", "internal",), optional=True), Field("text", TEXT, high=1024), Field("stop", TEXT, high=256), Field("limit", ENUM, names=("max_tokens", "context", "pool",), optional=True), Field("lost", INT, high=4294967295), Field("usage", MAP, required=True, always=True, table=table(Field("prompt_tokens", INT, required=True, always=True, high=4294967295), Field("cached_tokens", INT, high=4294967295), Field("output_tokens", INT, required=True, always=True, high=4294967295), Field("drafted_tokens", INT, high=4294967295), Field("accepted_tokens", INT, high=4294967295))), Field("timing", MAP, required=True, always=True, table=table(Field("queue_ms", REAL, always=True, real_low=0, real_high=1e+15), Field("prefill_ms", REAL, always=True, real_low=0, real_high=1e+15), Field("prepare_ms", REAL, real_low=0, real_high=1e+15), Field("wait_ms", REAL, real_low=0, real_high=1e+15), Field("lookup_ms", REAL, real_low=0, real_high=1e+15), Field("decode_ms", REAL, always=True, real_low=0, real_high=1e+15))))),
        max_bytes=6881280,
    ),
    "register_ok": table(
        Field("boot", INT, required=True, always=True, high=18446744073709551615),
        Field("subscription", ID, required=True, always=True),
        Field("heartbeat_ms", INT, required=True, always=True, high=4294967295),
        max_bytes=6881280,
    ),
    "assign": table(
        Field("session", ID, required=True, always=True),
        Field("id", ID, required=True, always=True),
        Field("epoch", EPOCH, required=True, always=True),
        Field("deadline_left_ms", INT, high=2592000000),
        Field("queue_us", INT, high=9007199254740992),
        Field("credit", INT, high=9007199254740992),
        Field("most", INT, high=9007199254740992),
        Field("cache_space", NAME, high=40),
        Field("prompt", PROMPT, required=True, always=True),
        Field("embed", BOOL, help="text and ids only: the answer is the prompt's embedding, without tokens"),
        Field("special", BOOL, help="text prompts: parse control tokens in the text"),
        Field("suffix", TEXT, optional=True, high=33554432, help="text only, which may be empty then: fill in the gap between it and this text"),
        Field("files", TEXT, high=33554432, help="with `suffix`: JSON, an array of other files, objects with filename and text"),
        Field("document", TEXT, optional=True, high=33554432, help="text with `embed` only, for models that rank: score how well this text answers the prompt"),
        Field("continue_turn", BOOL, help="messages only: continue the last one, which is the assistant's"),
        Field("tools", TEXT, high=33554432, help="messages only: JSON, an array of the tools that the model may call"),
        Field("template_kwargs", TEXT, high=33554432, help="messages only: JSON, an object of variables for the chat template"),
        Field("marks", BOOL, help="messages only: write out the control tokens around calls, thoughts and answers"),
        Field("model", NAME, high=128, help="which model, by name; empty: any"),
        Field("max_tokens", INT, low=1, high=2147483647, help="max tokens to generate; left out: to the end of the context"),
        Field("fit_context", BOOL, help="reduce max_tokens to fit the context instead of rejecting the request"),
        Field("temperature", REAL, optional=True, real_low=0, real_high=100, initial=1, help="divide the logits by this: above 1 varies more; 0 = greedy"),
        Field("top_k", INT, optional=True, high=2147483647, help="sample from the K most likely; 0 = off, 1 = greedy"),
        Field("top_p", REAL, optional=True, real_low=0, real_high=1, initial=1, help="sample from the likeliest tokens whose probabilities sum to P; 1 = off"),
        Field("min_p", REAL, optional=True, real_low=0, real_high=1, help="drop tokens less likely than P times the likeliest; 0 = off"),
        Field("repetition_penalty", REAL, optional=True, real_low=0.01, real_high=100, initial=1, help="make tokens of the prompt and the output less likely; 1 = off"),
        Field("presence_penalty", REAL, optional=True, real_low=-2, real_high=2, help="subtract from the logits of tokens in the output; 0 = off"),
        Field("frequency_penalty", REAL, optional=True, real_low=-2, real_high=2, help="subtract from a logit for each time its token is in the output; 0 = off"),
        Field("repeat_last_n", INT, optional=True, low=-1, high=2147483647, initial=-1, help="penalties look at the last N tokens of prompt and output; -1 = all, 0 = off"),
        Field("top_n_sigma", REAL, optional=True, real_low=-1, real_high=1000, help="drop tokens whose logits are more than N standard deviations below the largest; 0 = off"),
        Field("typical_p", REAL, optional=True, real_low=0, real_high=1, initial=1, help="sample from the tokens nearest to the expected surprise whose probabilities sum to P; 1 = off"),
        Field("xtc_probability", REAL, optional=True, real_low=0, real_high=1, help="exclude the likeliest tokens with this probability (XTC); 0 = off"),
        Field("xtc_threshold", REAL, optional=True, real_low=0, real_high=1, initial=0.1, help="XTC: exclude all tokens at least this likely, except the least likely of them"),
        Field("dynatemp_range", REAL, optional=True, real_low=0, real_high=100, help="vary the temperature by up to this with the entropy; 0 = off"),
        Field("dynatemp_exponent", REAL, optional=True, real_low=0, real_high=100, initial=1, help="the exponent of the entropy, for the dynamic temperature"),
        Field("dry_multiplier", REAL, optional=True, real_low=0, real_high=100, help="make tokens that would continue a repetition less likely (DRY); 0 = off"),
        Field("dry_base", REAL, optional=True, real_low=0, real_high=100, initial=1.75, help="DRY: the penalty grows by this with each token of the repeat; below 1 = off"),
        Field("dry_allowed_length", INT, optional=True, low=1, high=2147483647, initial=2, help="DRY: shorter repeats are allowed"),
        Field("dry_penalty_last_n", INT, optional=True, low=-1, high=2147483647, initial=-1, help="DRY: look at the last N tokens; -1 = all, 0 = off"),
        Field("logit_bias", BIASES, real_low=-100, real_high=100, high=1024, help="added to the logits of these ids, −∞: never; biases of a repeated id add up"),
        Field("logit_bias_text", MAPS, high=1024, help="the same for each id of one of these texts", table=table(Field("text", TEXT, required=True, always=True, high=128), Field("bias", REAL, required=True, always=True, real_low=-100, real_high=100))),
        Field("bad_words", TEXTS, low=1, high=128, item_high=128, help="texts whose ids the output never completes"),
        Field("dry_sequence_breakers", TEXTS, optional=True, low=1, high=32, item_high=128, help="DRY: repeats end at these texts; left out: newline, colon, quotation mark and asterisk"),
        Field("seed", INT, optional=True, high=18446744073709551615, help="same seed, same request: same output; left out: a random one"),
        Field("stop", TEXTS, low=1, high=16, item_high=256, help="end the output before the first of them"),
        Field("stop_ids", IDS, high=64, help="end the output, in addition to the model's own end ids"),
        Field("ignore_eos", BOOL, help="never sample the model's own end ids; not with a grammar"),
        Field("min_tokens", INT, high=2147483647, help="no end id and no stop ends the output before this many tokens; not with a grammar"),
        Field("thinking_budget", INT, optional=True, high=2147483647, help="end a thought after this many tokens, as the chat template ends one; 0 = no thought"),
        Field("grammar", TEXT, high=262144, help="what the output must match, in the form that grammar_kind names"),
        Field("grammar_kind", ENUM, help="gbnf, json (any object, without grammar), schema or regex", names=("gbnf", "json", "schema", "regex",)),
        Field("logprobs", INT, high=21, help="n: log probabilities of the id and of the n − 1 most likely; 0 = none"),
        Field("pieces", BOOL, help="with `logprobs`: frames also carry the bytes of each of those ids"),
        Field("priority", INT, low=-8, high=8, help="higher ones go first"),
        Field("deadline_ms", INT, high=2592000000, help="end this many milliseconds after arrival at the broker; 0 = none"),
        Field("on_disconnect", ENUM, help="what happens to the request when the session leaves", names=("cancel", "keep",)),
        Field("keep_s", INT, high=86400, help="seconds, for `keep`"),
        Field("cache_salt", NAME, high=128, help="cached prefixes are shared with requests of the same salt only; empty: with those of the same tenant"),
        Field("cache_prompt", BOOL, initial=1, help="false: neither look up nor keep the prompt in the prefix cache"),
        Field("tenant", NAME, high=128, help="on whose behalf the client asks: turns and shares are divided among tenants"),
        Field("request_id", NAME, high=128, help="a name for the request in logs and status: printable ASCII without blanks"),
        Field("progress", BOOL, help="report how much of the prompt has been processed"),
        Field("require", TEXTS, high=32, item_high=128, help="features that the request needs"),
        Field("output", IDS, high=4194304, help="ids generated before, elsewhere: continue after them"),
        Field("off", INT, high=9007199254740992, help="with `output`: bytes of its text that the client has"),
        Field("lost", INT, high=2, help="workers that died with the request so far"),
        Field("prompt_digest", ID, help="of the prompt that `output` continues, from one of its frames; left out: any"),
        max_bytes=54591488,
    ),
    "credit": table(
        Field("topics", BINS, required=True, always=True, high=1024, item_high=32),
        Field("counts", IDS, required=True, always=True, high=1024),
        max_bytes=6881280,
    ),
    "ack": table(
        Field("wseq", INT, required=True, always=True, high=9007199254740992),
        max_bytes=6881280,
    ),
    "resend": table(
        Field("wseq", INT, required=True, always=True, high=9007199254740992),
        max_bytes=6881280,
    ),
    "drain": table(
        Field("hand_over", BOOL),
        max_bytes=6881280,
    ),
}

MESSAGE: Table = table(Field("role", NAME, required=True, always=True, high=128), Field("content", TEXT, required=True, always=True, high=33554432), Field("name", NAME, high=128), Field("tool_calls", TEXT, high=33554432), Field("tool_call_id", NAME, high=128), Field("thought", TEXT, high=33554432))


class Parameters(TypedDict, total=False):
    """Parameters of `generate` and `chat` besides the prompt. Those left out have the protocol's defaults."""

    special: bool
    """text prompts: parse control tokens in the text"""
    suffix: str
    """text only, which may be empty then: fill in the gap between it and this text"""
    files: str
    """with `suffix`: JSON, an array of other files, objects with filename and text"""
    continue_turn: bool
    """messages only: continue the last one, which is the assistant's"""
    tools: str
    """messages only: JSON, an array of the tools that the model may call"""
    template_kwargs: str
    """messages only: JSON, an object of variables for the chat template"""
    marks: bool
    """messages only: write out the control tokens around calls, thoughts and answers"""
    model: str
    """which model, by name; empty: any"""
    max_tokens: int
    """max tokens to generate; left out: to the end of the context"""
    fit_context: bool
    """reduce max_tokens to fit the context instead of rejecting the request"""
    temperature: float
    """divide the logits by this: above 1 varies more; 0 = greedy (default: the pool's or the model's, else 1)"""
    top_k: int
    """sample from the K most likely; 0 = off, 1 = greedy (default: the pool's or the model's, else 0)"""
    top_p: float
    """sample from the likeliest tokens whose probabilities sum to P; 1 = off (default: the pool's or the model's, else 1)"""
    min_p: float
    """drop tokens less likely than P times the likeliest; 0 = off (default: the pool's or the model's, else 0)"""
    repetition_penalty: float
    """make tokens of the prompt and the output less likely; 1 = off (default: the pool's or the model's, else 1)"""
    presence_penalty: float
    """subtract from the logits of tokens in the output; 0 = off (default: the pool's or the model's, else 0)"""
    frequency_penalty: float
    """subtract from a logit for each time its token is in the output; 0 = off (default: the pool's or the model's, else 0)"""
    repeat_last_n: int
    """penalties look at the last N tokens of prompt and output; -1 = all, 0 = off (default: the pool's or the model's, else -1)"""
    top_n_sigma: float
    """drop tokens whose logits are more than N standard deviations below the largest; 0 = off (default: the pool's or the model's, else 0)"""
    typical_p: float
    """sample from the tokens nearest to the expected surprise whose probabilities sum to P; 1 = off (default: the pool's or the model's, else 1)"""
    xtc_probability: float
    """exclude the likeliest tokens with this probability (XTC); 0 = off (default: the pool's or the model's, else 0)"""
    xtc_threshold: float
    """XTC: exclude all tokens at least this likely, except the least likely of them (default: the pool's or the model's, else 0.1)"""
    dynatemp_range: float
    """vary the temperature by up to this with the entropy; 0 = off (default: the pool's or the model's, else 0)"""
    dynatemp_exponent: float
    """the exponent of the entropy, for the dynamic temperature (default: the pool's or the model's, else 1)"""
    dry_multiplier: float
    """make tokens that would continue a repetition less likely (DRY); 0 = off (default: the pool's or the model's, else 0)"""
    dry_base: float
    """DRY: the penalty grows by this with each token of the repeat; below 1 = off (default: the pool's or the model's, else 1.75)"""
    dry_allowed_length: int
    """DRY: shorter repeats are allowed (default: the pool's or the model's, else 2)"""
    dry_penalty_last_n: int
    """DRY: look at the last N tokens; -1 = all, 0 = off (default: the pool's or the model's, else -1)"""
    logit_bias: Mapping[int, float] | Sequence[tuple[int, float]]
    """added to the logits of these ids, −∞: never; biases of a repeated id add up"""
    logit_bias_text: Mapping[str, float] | Sequence[Mapping[str, object]]
    """the same for each id of one of these texts"""
    bad_words: str | Sequence[str]
    """texts whose ids the output never completes"""
    dry_sequence_breakers: str | Sequence[str]
    """DRY: repeats end at these texts; left out: newline, colon, quotation mark and asterisk"""
    seed: int
    """same seed, same request: same output; left out: a random one"""
    stop: str | Sequence[str]
    """end the output before the first of them"""
    stop_ids: Sequence[int]
    """end the output, in addition to the model's own end ids"""
    ignore_eos: bool
    """never sample the model's own end ids; not with a grammar"""
    min_tokens: int
    """no end id and no stop ends the output before this many tokens; not with a grammar"""
    thinking_budget: int
    """end a thought after this many tokens, as the chat template ends one; 0 = no thought"""
    grammar: str | Mapping[str, object]
    """what the output must match, in the form that grammar_kind names"""
    grammar_kind: str
    """gbnf, json (any object, without grammar), schema or regex"""
    logprobs: int
    """n: log probabilities of the id and of the n − 1 most likely; 0 = none"""
    pieces: bool
    """with `logprobs`: frames also carry the bytes of each of those ids"""
    priority: int
    """higher ones go first"""
    deadline_ms: int
    """end this many milliseconds after arrival at the broker; 0 = none"""
    keep_s: int
    """0: ends with the session; else lives so many seconds without it"""
    cache_salt: str
    """cached prefixes are shared with requests of the same salt only; empty: with those of the same tenant"""
    cache_prompt: bool
    """false: neither look up nor keep the prompt in the prefix cache"""
    tenant: str
    """on whose behalf the client asks: turns and shares are divided among tenants"""
    request_id: str
    """a name for the request in logs and status: printable ASCII without blanks"""
    progress: bool
    """report how much of the prompt has been processed"""
    require: str | Sequence[str]
    """features that the request needs"""
    output: Sequence[int]
    """ids generated before, elsewhere: continue after them"""
    off: int
    """with `output`: bytes of its text that the client has"""
    lost: int
    """workers that died with the request so far"""
    prompt_digest: bytes
    """of the prompt that `output` continues, from one of its frames; left out: any"""
    rpm: int
    """most requests of the tenant in a minute; 0 = no limit"""
    tpm: int
    """most tokens of the tenant, of prompts and answers, in a minute"""
    rpd: int
    """most requests of the tenant in a day"""
    tpd: int
    """most tokens of the tenant in a day"""
    part: bool
    """belongs to a request that was counted: these limits count its tokens only"""
