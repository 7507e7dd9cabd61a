# SPDX-License-Identifier: MIT
"""Calls of tools through quern-gateway, before a broker in a thread whose worker says what the test wants."""

import json
import os
import subprocess

import pytest
from saying import TOP, Gateway
from fake_broker import LIMITS

TOOL = {"type": "function", "function": {"name": "rain", "parameters": {"type": "object", "properties": {}}}}
ASK = {"messages": [{"role": "user", "content": "Rain?"}]}
CALLS = {
    "hermes": ["I look.\n<tool_", 'call>\n{"name": "ra', 'in", "arguments": {"town": ', '"Ulm"}}\n</tool_call>'],
    "mistral": ["I look.\n[TOOL", '_CALLS][{"name": "rain", "argum', 'ents": {"town": "Ulm"}}]'],
    "llama3": ['{"name": "rain", ', '"parameters": {"town": "U', 'lm"}}'],
    "members": ["Hm.\n</th", "ink>\n\nI look.\n<tool_call>\n<function=rain>\n<para",
                "meter=town>\nUlm\n</parameter>\n</function>\n</tool_call>"],
    "command-r": ["I look.\n<|START_ACTION|>", '[{"tool_name": "rain", "parameters": {"town": ', '"Ulm"}}]<|END_ACTION|>'],
}


@pytest.fixture(params=sorted(CALLS))
def form(request):
    return request.param


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("q")  # a socket's path is short


@pytest.fixture(autouse=True)
def large_requests(monkeypatch):
    monkeypatch.setitem(LIMITS, "request_bytes", 65536)


def test_calls_are_taken_out_of_answers(folder, form):
    with Gateway(folder, form, CALLS[form]) as gateway:
        request = {**ASK, "tools": [TOOL]}
        choice = gateway.ask("POST", "/v1/chat/completions", request)["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"]["content"] == (None if form == "llama3" else "I look.")
        (call,) = choice["message"]["tool_calls"]
        assert (call["type"], call["function"]["name"]) == ("function", "rain")
        assert json.loads(call["function"]["arguments"]) == {"town": "Ulm"}
        assert len(call["id"]) == 9 and call["id"].isalnum()
        sent = gateway.broker.generates[0]
        assert json.loads(sent["tools"])[0]["function"]["name"] == "rain"
        deltas = [event["choices"][0] for event in gateway.events("/v1/chat/completions", request)]
        parts = [delta["delta"]["tool_calls"][0] for delta in deltas if "tool_calls" in delta["delta"]]
        assert parts[0]["function"] == {"name": "rain", "arguments": ""} and len(parts[0]["id"]) == 9
        assert "".join(part["function"]["arguments"] for part in parts) == call["function"]["arguments"]
        assert len(parts) >= 2 - (form == "members") and {part["index"] for part in parts} == {0}
        said = "".join(delta["delta"].get("content") or "" for delta in deltas)
        assert said == (choice["message"]["content"] or "")
        assert deltas[-1]["finish_reason"] == "tool_calls"


def test_calls_and_results_go_back_to_the_model(folder):
    with Gateway(folder, "hermes", ["It is dry."]) as gateway:
        calls = [{"id": "abcdefghi", "type": "function", "function": {"name": "rain", "arguments": "{}"}}]
        messages = [*ASK["messages"], {"role": "assistant", "content": None, "tool_calls": calls},
                    {"role": "tool", "tool_call_id": "abcdefghi", "content": "no"}]
        choice = gateway.ask("POST", "/v1/chat/completions", {"messages": messages, "tools": [TOOL]})["choices"][0]
        assert (choice["message"]["content"], choice["finish_reason"]) == ("It is dry.", "stop")
        assert "tool_calls" not in choice["message"]
        prompt = gateway.broker.generates[0]["prompt"]
        assert json.loads(prompt[1]["tool_calls"]) == calls
        assert (prompt[2]["role"], prompt[2]["tool_call_id"], prompt[2]["content"]) == ("tool", "abcdefghi", "no")


def test_other_families_call_too(folder):
    with Gateway(folder, "hermes", CALLS["hermes"]) as gateway:
        tool = {"name": "rain", "input_schema": {"type": "object"}}
        request = {**ASK, "max_tokens": 50, "tools": [tool]}
        whole = gateway.ask("POST", "/v1/messages", request)
        assert whole["stop_reason"] == "tool_use"
        text, use = whole["content"]
        assert text == {"type": "text", "text": "I look."}
        assert (use["type"], use["name"], use["input"]) == ("tool_use", "rain", {"town": "Ulm"})
        events = gateway.events("/v1/messages", request)
        starts = [event for event in events if event["type"] == "content_block_start"]
        assert [(start["index"], start["content_block"]["type"]) for start in starts] == [(0, "text"), (1, "tool_use")]
        assert [event["index"] for event in events if event["type"] == "content_block_stop"] == [0, 1]
        parts = [event["delta"]["partial_json"] for event in events
                 if event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta"]
        assert json.loads("".join(parts)) == {"town": "Ulm"}
        whole = gateway.ask("POST", "/api/chat", {**ASK, "tools": [TOOL], "stream": False})
        call = {"function": {"name": "rain", "arguments": {"town": "Ulm"}}}
        assert whole["message"] == {"role": "assistant", "content": "I look.", "tool_calls": [call]}
        lines = [json.loads(line) for line in gateway.text("POST", "/api/chat", {**ASK, "tools": [TOOL]}).splitlines()]
        assert [line["message"]["tool_calls"] for line in lines if "tool_calls" in line["message"]] == [[call]]


def test_a_call_that_is_forced_is_a_grammar_in_the_form_of_the_model(folder, form, monkeypatch):
    monkeypatch.setitem(LIMITS, "grammar_bytes", 262144)
    request = {**ASK, "tools": [TOOL, {"type": "function", "function": {"name": "time"}}]}
    named = {"type": "function", "function": {"name": "rain"}}
    with Gateway(folder, form, CALLS[form]) as gateway:
        for fields in ({"tool_choice": "auto"}, {"tool_choice": "required"}, {"tool_choice": named},
                       {"parallel_tool_calls": False}):
            choice = gateway.ask("POST", "/v1/chat/completions", {**request, **fields})["choices"][0]
            assert choice["message"]["tool_calls"][0]["function"]["name"] == "rain"
        grammars = [sent["grammar"] for sent in gateway.broker.generates]
        assert grammars[0] == "" and all(sent["grammar_kind"] == "gbnf" for sent in gateway.broker.generates)
        assert all(json.loads(sent["tools"])[1]["function"]["name"] == "time" for sent in gateway.broker.generates)
        mark = {"hermes": "call", "mistral": "CALLS", "llama3": "parameters", "command-r": "START", "members": "function"}
        assert all(mark[form] in grammar for grammar in grammars[1:])
        assert ["root ::= thought calls" not in grammar and grammar != "" for grammar in grammars] == [False, False, False, True]
        assert ['"time"' in grammar for grammar in grammars] == [False, True, False, True]
        tool = {"name": "rain", "input_schema": {"type": "object"}}
        for choice in ({"type": "auto"}, {"type": "any"}, {"type": "tool", "name": "rain"}):
            asked = {**ASK, "max_tokens": 50, "tools": [tool], "tool_choice": choice}
            assert gateway.ask("POST", "/v1/messages", asked)["stop_reason"] == "tool_use"
        grammars = [sent["grammar"] for sent in gateway.broker.generates[4:]]
        assert grammars[0] == "" and grammars[1] == grammars[2] != ""
        error = gateway.ask("POST", "/v1/messages", {**asked, "tool_choice": {"type": "tool", "name": "snow"}})["error"]
        assert "snow" in error["message"]


def test_a_model_without_a_form_refuses_tools_and_without_tools_nothing_is_parsed(folder):
    with Gateway(folder, "", CALLS["hermes"]) as gateway:
        error = gateway.ask("POST", "/v1/chat/completions", {**ASK, "tools": [TOOL]})["error"]
        assert (error["param"], error["code"]) == ("tools", "unsupported_parameter")
        for request in (ASK, {**ASK, "tools": [TOOL], "tool_choice": "none"}):
            choice = gateway.ask("POST", "/v1/chat/completions", request)["choices"][0]
            assert choice["message"]["content"] == "".join(CALLS["hermes"])
            assert choice["finish_reason"] == "stop"
        assert all(not generate["tools"] for generate in gateway.broker.generates)


@pytest.mark.skipif("QUERN_SDKS_PYTHON" not in os.environ, reason="scripts/check/sdks runs it")
def test_the_sdks_call_tools(folder):
    with Gateway(folder, "hermes", CALLS["hermes"]) as gateway:
        environment = {**os.environ, "QUERN_SDKS_TOOLS_URL": "http://" + gateway.address}
        environment.pop("PYTHONPATH", None)
        subprocess.run([os.environ["QUERN_SDKS_PYTHON"], TOP / "scripts/check/sdks"], check=True, timeout=200,
                       env=environment)
