# SPDX-License-Identifier: MIT
"""Thoughts through quern-gateway, before a broker in a thread whose worker says what the test wants."""

import json

import pytest
from saying import Gateway
from fake_broker import LIMITS

ASK = {"messages": [{"role": "user", "content": "Rain?"}]}
SAYS = ["It asks", " for rain.", "\n</think", ">\n\nNo", " rain."]  # two ids each; the prompt has opened the thought
THOUGHT, TEXT = "It asks for rain.", "No rain."


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("q")


def test_openai_has_thoughts_beside_the_content(folder):
    with Gateway(folder, "members", SAYS) as gateway:
        answer = gateway.ask("POST", "/v1/chat/completions", ASK)
        message = answer["choices"][0]["message"]
        assert (message["content"], message["reasoning_content"], message["reasoning"]) == (TEXT, THOUGHT, THOUGHT)
        assert answer["usage"]["completion_tokens_details"] == {"reasoning_tokens": 8}
        assert gateway.broker.generates[0]["marks"] is True
        deltas = [event["choices"][0]["delta"] for event in gateway.events("/v1/chat/completions", ASK)]
        assert "".join(delta.get("reasoning_content", "") for delta in deltas) == THOUGHT
        assert "".join(delta.get("content") or "" for delta in deltas) == TEXT
        kinds = ["content" if delta.get("content") else "reasoning" for delta in deltas if delta.get("content") or "reasoning" in delta]
        assert kinds == sorted(kinds, reverse=True)  # all of the thought, then the text


def test_anthropic_has_them_in_blocks(folder):
    with Gateway(folder, "members", SAYS) as gateway:
        request = {**ASK, "max_tokens": 50, "thinking": {"type": "enabled", "budget_tokens": 1024}}
        thought, text = gateway.ask("POST", "/v1/messages", request)["content"]
        assert (thought["type"], thought["thinking"]) == ("thinking", THOUGHT)
        assert text == {"type": "text", "text": TEXT}
        events = gateway.events("/v1/messages", request)
        starts = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
        assert starts == ["thinking", "text"]
        said = "".join(event["delta"].get("thinking", "") for event in events if event["type"] == "content_block_delta")
        assert said == THOUGHT
        assert [event["index"] for event in events if event["type"] == "content_block_stop"] == [0, 1]


def test_ollama_has_them_in_a_member(folder):
    with Gateway(folder, "members", SAYS) as gateway:
        message = gateway.ask("POST", "/api/chat", {**ASK, "think": True, "stream": False})["message"]
        assert (message["content"], message["thinking"]) == (TEXT, THOUGHT)
        lines = [json.loads(line)["message"] for line in gateway.text("POST", "/api/chat", ASK).splitlines()]
        assert "".join(line.get("thinking", "") for line in lines) == THOUGHT
        assert "".join(line["content"] for line in lines) == TEXT


def test_thoughts_stay_in_the_text_where_that_is_asked_for(folder):
    with Gateway(folder, "members", SAYS) as gateway:
        message = gateway.ask("POST", "/v1/chat/completions", {**ASK, "reasoning_format": "none"})["choices"][0]["message"]
        assert message["content"] == "".join(SAYS) and "reasoning_content" not in message


def test_a_thought_that_never_ends_is_one(folder):
    with Gateway(folder, "members", ["I think", " on and on"]) as gateway:
        message = gateway.ask("POST", "/v1/chat/completions", ASK)["choices"][0]["message"]
        assert (message["content"], message["reasoning_content"]) == ("", "I think on and on")


def test_json_comes_behind_the_thought(folder, monkeypatch):
    monkeypatch.setitem(LIMITS, "request_bytes", 65536)
    monkeypatch.setitem(LIMITS, "grammar_bytes", 262144)
    with Gateway(folder, "members", ["Hm.</think>", '{"dry": true}']) as gateway:
        message = gateway.ask("POST", "/v1/chat/completions", {**ASK, "response_format": {"type": "json_object"}})["choices"][0]["message"]
        assert (message["content"], message["reasoning_content"]) == ('{"dry": true}', "Hm.")
        sent = gateway.broker.generates[-1]
        assert sent["grammar_kind"] == "gbnf" and sent["grammar"].startswith("root ::= thought content")
        message = gateway.ask("POST", "/v1/chat/completions", {**ASK, "regex": "a+"})["choices"][0]["message"]
        assert message["content"] == 'Hm.</think>{"dry": true}' and gateway.broker.generates[-1]["grammar"] == "a+"


def test_switches_and_earlier_thoughts_reach_the_template(folder):
    with Gateway(folder, "members", ["No."]) as gateway:
        def ask(**fields):
            return gateway.ask("POST", "/v1/chat/completions", {**ASK, **fields})
        for fields in ({"reasoning_effort": "none"}, {"chat_template_kwargs": {"enable_thinking": False}}):
            assert ask(**fields)["choices"][0]["message"]["content"] == "No."
            assert json.loads(gateway.broker.generates[-1]["template_kwargs"]) == {"enable_thinking": False}
        gateway.ask("POST", "/v1/messages", {**ASK, "max_tokens": 5, "thinking": {"type": "disabled"}})
        assert json.loads(gateway.broker.generates[-1]["template_kwargs"]) == {"enable_thinking": False}
        earlier = [*ASK["messages"], {"role": "assistant", "content": "No.", "reasoning_content": "Hm."}, *ASK["messages"]]
        ask(messages=earlier)
        assert gateway.broker.generates[-1]["prompt"][1]["thought"] == "Hm."
        blocks = [{"type": "thinking", "thinking": "Hm.", "signature": ""}, {"type": "text", "text": "No."}]
        earlier[1] = {"role": "assistant", "content": blocks}
        gateway.ask("POST", "/v1/messages", {"messages": earlier, "max_tokens": 5})
        assert gateway.broker.generates[-1]["prompt"][1]["thought"] == "Hm."
        error = gateway.ask("POST", "/v1/chat/completions", {**ASK, "chat_template_kwargs": 5})["error"]
        assert error["param"] == "chat_template_kwargs"


def test_ollamas_clients_are_told_what_the_model_can_do(folder):
    with Gateway(folder, "members", SAYS) as gateway:
        told = gateway.ask("POST", "/api/show", {"model": "fake:latest"})
        assert told["capabilities"] == ["completion", "tools", "thinking"]
        assert told["model_info"]["quern.context_length"] == 512
        assert "error" in gateway.ask("POST", "/api/show", {"model": "other"})
        assert "error" in gateway.ask("POST", "/api/show", {})
        (loaded,) = gateway.ask("GET", "/api/ps")["models"]
        assert (loaded["name"], loaded["context_length"]) == ("fake", 512)
        assert gateway.ask("GET", "/v1/models")["data"][0]["max_model_len"] == 512
        assert gateway.ask("GET", "/ping")["status"] == "ok" and gateway.ask("GET", "/version")["version"]
