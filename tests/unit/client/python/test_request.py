# SPDX-License-Identifier: MIT
"""What a caller may give for a request; errors and answers as Python sees them; places and keys."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os

import pytest

import quern
from fake_broker import LIMITS
from quern import _certificate, _codec, _errors, _place, _request, _session, _tables


def encoded(prompt="Hi", limits=_session.LIMITS, **parameters):
    return _codec.decode(_request.encoded(bytes(16), _request.generation(prompt, parameters), limits).wire)[1]


def test_a_prompt_is_a_text_or_ids_or_messages():
    assert encoded("Grüße")["prompt"] == "Grüße"
    assert encoded([1, 2])["prompt"] == [1, 2]
    assert encoded((1, 2))["prompt"] == [1, 2]
    assert encoded(range(3))["prompt"] == [0, 1, 2]
    messages = [{"role": "user", "content": "Hi"}]
    (message,) = encoded(messages)["prompt"]
    assert {key: value for key, value in message.items() if value} == messages[0]
    assert encoded(tuple(messages))["prompt"] == [message]


def test_every_parameter_arrives_as_it_was_given():
    given = {"tools": "[]", "template_kwargs": "{}", "marks": True, "special": True, "suffix": "y", "files": "[]", "continue_turn": True, "model": "m", "max_tokens": 5, "fit_context": True,
             "temperature": 0.5, "top_k": 3, "top_p": 0.5, "min_p": 0.1,
             "repetition_penalty": 1.5, "presence_penalty": 0.5, "frequency_penalty": -0.5, "logit_bias": {3: -1.0},
             "repeat_last_n": 64, "top_n_sigma": 1.5, "typical_p": 0.5, "xtc_probability": 0.5, "xtc_threshold": 0.25,
             "dynatemp_range": 0.5, "dynatemp_exponent": 2.0, "dry_multiplier": 0.5, "dry_base": 1.5,
             "dry_allowed_length": 3, "dry_penalty_last_n": 99, "logit_bias_text": {"a": 1.5}, "bad_words": ["b"],
             "dry_sequence_breakers": [],
             "grammar": "a+", "grammar_kind": "regex",
             "seed": 2**64 - 1, "stop": ["a", "b"], "stop_ids": [7], "ignore_eos": True, "min_tokens": 4, "thinking_budget": 0, "logprobs": 2, "pieces": True, "priority": -3,
             "deadline_ms": 1000, "keep_s": 9, "cache_salt": "mine", "cache_prompt": False, "tenant": "ann",
             "request_id": "r-1", "progress": True, "rpm": 1, "tpm": 2, "rpd": 3, "tpd": 4, "part": True,
             "output": [1, 70000], "off": 3, "lost": 2, "prompt_digest": bytes(range(16)), "require": ["x"]}
    assert set(given) == set(_tables.Parameters.__annotations__), "a parameter is not tried here"
    chat = given.keys() - {"suffix", "files", "ignore_eos", "min_tokens"}
    infill = given.keys() - {"tools", "continue_turn", "template_kwargs", "marks", "grammar", "grammar_kind"}
    fields = encoded([{"role": "user", "content": "Hi"}], **{name: given[name] for name in chat})
    filled = encoded("Hi", **{name: given[name] for name in infill})
    fields.update({name: filled[name] for name in ("suffix", "files", "ignore_eos", "min_tokens")})
    assert fields.pop("require") == ["x", "continue_turn", "samplers", "thinking_budget", "resume"]
    assert filled["require"] == ["x", "suffix", "samplers", "ignore_eos", "min_tokens", "thinking_budget", "resume"]
    assert fields.pop("logit_bias") == [(3, -1.0)]
    assert fields.pop("logit_bias_text") == [{"text": "a", "bias": 1.5}]
    assert fields.pop("on_disconnect") == "keep"
    for name in set(given) - {"logit_bias", "logit_bias_text", "require"}:
        assert fields[name] == given[name], name


def test_what_is_left_out_is_as_the_protocol_says_and_the_seed_is_random():
    fields, again = encoded(), encoded(temperature=None, stop=None)
    assert (fields["temperature"], fields["top_k"], fields["max_tokens"]) == (None, None, 0)  # as the pool has them
    assert fields["on_disconnect"] == "cancel"
    assert fields["seed"] != again["seed"]


@pytest.mark.parametrize(
    ("asked", "needed"),
    [
        ({}, []), ({"top_k": 5, "repeat_last_n": -1, "typical_p": 1, "dry_multiplier": 0}, []),
        ({"typical_p": 0.9}, ["samplers"]), ({"repeat_last_n": 0}, ["samplers"]), ({"bad_words": "no"}, ["samplers"]),
        ({"logit_bias": {3: float("-inf")}}, ["samplers"]), ({"logit_bias": {3: -100}}, []),
        ({"logit_bias_text": {"no": 1}}, ["samplers"]), ({"bad_words": []}, []),
        ({"ignore_eos": True}, ["ignore_eos"]), ({"ignore_eos": False}, []),
        ({"min_tokens": 1}, ["min_tokens"]), ({"min_tokens": 0}, []),
        ({"thinking_budget": 0}, ["thinking_budget"]), ({"thinking_budget": None}, []),
        ({"output": [1], "seed": 1}, ["resume"]), ({"output": [], "lost": 0}, []), ({"lost": 1}, ["resume"]),
        ({"prompt_digest": bytes(16)}, ["resume"]),
    ],
)
def test_an_older_pool_is_told_what_it_must_not_leave_out(asked, needed):
    assert (encoded(**asked).get("require") or []) == needed


def test_one_stop_string_is_a_stop_string():
    assert encoded(bad_words="no")["bad_words"] == ["no"]
    assert encoded(stop="\n\n")["stop"] == ["\n\n"]
    assert encoded(logit_bias=[(1, 2), (1, 3.0)])["logit_bias"] == [(1, 2.0), (1, 3.0)]
    assert encoded(temperature=1)["temperature"] == 1.0


def test_a_schema_may_be_given_as_python_has_it():
    fields = encoded(grammar={"type": "object", "properties": {"größe": {"type": "integer"}}})
    assert fields["grammar_kind"] == "schema"
    assert json.loads(fields["grammar"])["properties"]["größe"] == {"type": "integer"}


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"prompt": ""}, "prompt: is empty"), ({"prompt": []}, "prompt: is empty"), ({"prompt": None}, "prompt"),
        ({"prompt": {"role": "user"}}, "prompt: expected"), ({"prompt": ["Hi"]}, "prompt: expected token ids"),
        ({"prompt": b"Hi"}, "prompt: expected"), ({"prompt": [{"role": 1, "content": ""}]}, "message 0: role"),
        ({"temperature": -1}, "temperature: -1 is out of range 0..100"), ({"temprature": 1}, "temprature: unknown parameter"),
        ({"max_tokens": "5"}, "max_tokens: expected an integer"), ({"stop": 5}, "stop: expected"),
        ({"stop": [b"x"]}, "stop: expected"), ({"top_k": True}, "top_k: expected an integer"),
        ({"logit_bias": {"a": 1}}, "logit_bias: item 0"), ({"logit_bias": 5}, "logit_bias"),
        ({"on_disconnect": "keep"}, "unknown parameter"), ({"seed": -1}, "seed: -1 is out of range"),
        ({"grammar_kind": "lark"}, "grammar_kind"), ({"grammar": 5}, "grammar: expected"),
        ({"output": [1]}, "output: its seed is missing"),
        ({"output": [1, 2], "seed": 1, "max_tokens": 1}, "output: 2 ids are more than max_tokens (1)"),
        ({"output": [-1], "seed": 1}, "output: expected token ids"), ({"lost": 3}, "lost: 3 is out of range 0..2"),
        ({"off": 1}, "off: expected with output"), ({"prompt_digest": b"x"}, "prompt_digest: expected a byte string of 16"),
        ({"model": "a\nb"}, "model: control character"), ({"keep_s": 10**6}, "keep_s"),
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_right_is_refused_before_it_is_sent(wrong, text):
    with pytest.raises(quern.BadRequest) as refusal:
        encoded(**{"prompt": "Hi", **wrong})
    assert text in str(refusal.value)
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize(
    "wrong",
    [{"prompt": list(range(9))}, {"stop": ["a", "b", "c"]}, {"stop": ["fünf!"]}, {"stop_ids": [1, 2, 3, 4]},
     {"logprobs": 3}, {"logit_bias": {1: 1, 2: 1}}, {"grammar": "x" * 9}, {"prompt": "x" * 20000}],
)  # fmt: skip
def test_what_the_pool_said_it_takes_is_held_before_anything_is_sent(wrong):
    with pytest.raises(quern.TooLong, match="the pool accepts"):
        encoded(limits=LIMITS, **{"prompt": "Hi", **wrong})


def test_a_pool_that_takes_no_parts_takes_one_message():
    with pytest.raises(quern.TooLong, match="the request has 50.. bytes; the pool accepts 4096"):
        encoded("x" * 5000, limits={**LIMITS, "generate_bytes": 0})
    assert encoded("x" * 5000, limits=LIMITS)["prompt"] == "x" * 5000


@pytest.mark.parametrize("length", [4000, 4097, 8000, 16000])
def test_a_long_request_goes_in_parts_that_are_it(length):
    wire = _request.encoded(bytes(16), _request.generation("x" * length, {"tenant": "ann"}), LIMITS).wire
    sent = list(_request.parts(bytes(16), wire, "ann", LIMITS))
    assert all(len(each) <= LIMITS["request_bytes"] for each in sent)
    if len(wire) <= LIMITS["request_bytes"]:
        assert sent == [wire]
        return
    found = b""
    for each in sent:
        kind, fields = _codec.decode(each)
        assert (kind, fields["id"], fields["total"], fields["at"], fields["tenant"]) == (
            "generate_part", bytes(16), len(wire), len(found), "ann")  # fmt: skip
        found += fields["data"]
    assert found == wire


# ---- what comes back ----


def test_every_error_of_the_protocol_is_a_class():
    for name in _tables.ERRORS:
        error = _errors.error_of(name, "why", 250)
        assert type(error) is not quern.Error, f"{name} has no class"
        assert isinstance(error, quern.Error)
        assert error.name == name
        assert str(error) == "why"
        assert getattr(quern, type(error).__name__) is type(error)
    assert _errors.error_of("overloaded", "", 250).retry_after == 0.25
    new = _errors.error_of("of_tomorrow", "why")
    assert (type(new), new.name) == (quern.Error, "of_tomorrow")


def test_all_that_the_pool_tells_of_itself_can_be_read():
    def keys(table):
        return [field.key for field in table.fields]

    status = _tables.KINDS["status_ok"]
    assert [each.name for each in dataclasses.fields(quern.Worker)] == keys(status.by_key["workers"].table)
    assert [each.name for each in dataclasses.fields(quern.RequestStatus)] == keys(status.by_key["requests"].table)
    assert [each.name for each in dataclasses.fields(quern.Status)] == keys(status)[1:]
    assert [each.name for each in dataclasses.fields(quern.Model)] == keys(
        _tables.KINDS["hello_ok"].by_key["models"].table)
    end = _tables.KINDS["end"].by_key["end"].table
    told = {"reason", "error", "text", "stop", "limit", "lost", *keys(end.by_key["usage"].table), *keys(end.by_key["timing"].table)}
    assert {each.name for each in dataclasses.fields(quern.End)} == told | {"retry_after_ms", "seed"}


def test_the_parameters_stand_in_the_documentation():
    for function in (quern.Client.generate, quern.Client.chat, quern.AsyncClient.generate, quern.AsyncClient.chat):
        shown = inspect.signature(function).parameters
        for name in _tables.Parameters.__annotations__:
            assert name in shown
            assert f"    {name}: " in function.__doc__


# ---- places ----


def test_a_pool_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(quern.Unreachable, match="no pool is running in .*/quern") as refusal:
        _place.endpoint_of(None)
    assert isinstance(refusal.value, ConnectionError)
    (tmp_path / "quern").mkdir(mode=0o700)
    with pytest.raises(quern.Unreachable, match="/quern/frontend does not exist"):
        _place.endpoint_of(None)
    (tmp_path / "quern" / "frontend").touch()
    assert _place.endpoint_of(None) == f"ipc://{tmp_path}/quern/frontend"
    assert _place.endpoint_of(tmp_path / "quern") == _place.endpoint_of(f"{tmp_path}/quern")
    assert _place.endpoint_of("tcp://h:1") == "tcp://h:1"


def test_a_run_directory_that_a_stranger_could_have_made_is_not_trusted(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    (folder / "frontend").touch()
    folder.chmod(0o755)
    with pytest.raises(quern.NotAllowed, match="has mode 0755"):
        _place.endpoint_of(folder)
    folder.chmod(0o700)
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "quern").symlink_to(folder)
    assert _place.endpoint_of(tmp_path / "link") == f"ipc://{folder}/frontend"
    monkeypatch.chdir(tmp_path)
    for named in ("run", "./run", "link", "./link"):
        assert _place.endpoint_of(named) == f"ipc://{folder}/frontend"
    # At the default path anyone may have made a link.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(quern.NotAllowed, match="not a directory"):
        _place.endpoint_of(None)
    (tmp_path / "quern").unlink()
    for wrong in ("quern", "http://h:1"):
        with pytest.raises(quern.BadRequest, match="not an endpoint"):
            _place.endpoint_of(wrong)


# ---- keys ----

PUBLIC, SECRET = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID", "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
CERTIFICATE = f'# by hand\nmetadata\n    public-key = "no"\ncurve\n    public-key = "{PUBLIC}"\n'


def test_a_key_is_read_from_all_that_holds_one(tmp_path):
    path = tmp_path / "server"
    for text in (CERTIFICATE, CERTIFICATE.replace("\n", "\r\n"), "\ufeff" + CERTIFICATE, PUBLIC, f"\n {PUBLIC}\n",
                 f"public-key={PUBLIC}\n", f"curve\n\tpublic-key = '{PUBLIC}' # mine\n"):
        path.write_text(text, encoding="utf-8", newline="")
        assert _certificate.server_key(path) == PUBLIC
    assert _certificate.server_key(PUBLIC) == PUBLIC


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "no public-key"), (CERTIFICATE.replace(PUBLIC, "short"), ":5: public-key has 5 characters"),
     (CERTIFICATE.replace(PUBLIC[:2], "~~"), ":5: public-key is not Z85"), (CERTIFICATE[:-2], "unterminated quote after public-key"),
     (CERTIFICATE + CERTIFICATE.split("curve\n")[1], ":6: duplicate public-key"), ("x" * 70000, "not a CURVE certificate"),
     (f"other\n    public-key = {PUBLIC}\n", "no public-key")],
)  # fmt: skip
def test_a_certificate_that_is_none_is_refused_with_file_and_line(tmp_path, text, reason):
    path = tmp_path / "server"
    path.write_text(text)
    with pytest.raises(quern.BadRequest) as refusal:
        _certificate.server_key(path)
    assert reason in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_a_key_pair_is_read_and_only_from_where_nobody_else_reads(tmp_path):
    path, secret = tmp_path / "me", tmp_path / "me_secret"
    path.write_text(CERTIFICATE)
    with pytest.raises(quern.BadRequest, match="me_secret: No such file"):
        _certificate.key_pair(path)
    secret.write_text(CERTIFICATE + f'    secret-key = "{SECRET}"\n')
    secret.chmod(0o600)
    assert _certificate.key_pair(path) == _certificate.key_pair(secret) == (PUBLIC, SECRET)
    secret.chmod(0o640)
    if os.geteuid() == secret.stat().st_uid:
        with pytest.raises(quern.NotAllowed, match="others can read it"):
            _certificate.key_pair(path)
    with pytest.raises(quern.BadRequest, match="neither a file nor 40 characters"):
        _certificate.server_key(tmp_path / "none")
