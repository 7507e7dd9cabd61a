# SPDX-License-Identifier: MIT
"""What the gateway says before a worker has said which model it serves, and when none does any more."""

import http.client
import json

import pytest
from saying import WAIT, Gateway

ASK = {"messages": [{"role": "user", "content": "Rain?"}]}
POSTS = {"/v1/chat/completions": ASK, "/v1/completions": {"prompt": "a"}, "/v1/messages": ASK,
         "/api/chat": {**ASK, "stream": False}, "/tokenize": {"content": "a"}}


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("q")  # a socket's path is short


def answer(gateway, method, path, body=None):
    connection = http.client.HTTPConnection(gateway.address, timeout=WAIT)
    connection.request(method, path, json.dumps(body) if body else None)
    said = connection.getresponse()
    result = said.status, said.getheader("Retry-After"), said.read().decode()
    connection.close()
    return result


def test_no_answer_has_a_model_without_a_name(folder):
    with Gateway(folder, "", ["Dry."], model="", state="starting") as gateway:
        gateway.until(lambda: "no worker has reported" in answer(gateway, "GET", "/health")[2])
        status, _, health = answer(gateway, "GET", "/health")
        assert (status, json.loads(health)["status"]) == (503, "loading")
        for path, body in POSTS.items():
            for model in ({}, {"model": "fake"}):
                status, retry, text = answer(gateway, "POST", path, {**body, **model})
                assert (status, retry) == (503, "1"), text
                assert "no worker has reported its model yet" in text
        assert answer(gateway, "GET", "/v1/models")[:2] == (503, "1")
        assert not gateway.broker.generates
        gateway.broker.worker = {"model": "fake", "state": "ready"}
        gateway.until(lambda: answer(gateway, "GET", "/health")[0] == 200)
        assert gateway.ask("POST", "/v1/chat/completions", ASK)["model"] == "fake"
        # Its worker starts anew: work is taken, and by the name that is known.
        gateway.broker.worker = {"model": "", "state": "starting"}
        gateway.until(lambda: "no worker is ready" in answer(gateway, "GET", "/health")[2])
        assert gateway.ask("POST", "/v1/chat/completions", ASK)["model"] == "fake"
        assert gateway.ask("POST", "/v1/chat/completions", {**ASK, "model": "fake"})["model"] == "fake"
        assert gateway.ask("GET", "/v1/models")["data"][0]["ready"] is False
        assert answer(gateway, "POST", "/v1/chat/completions", {**ASK, "model": "other"})[0] == 404
        # It comes back with another model.
        gateway.broker.worker = {"model": "new", "state": "ready"}
        gateway.until(lambda: answer(gateway, "GET", "/health")[0] == 200)
        assert gateway.ask("POST", "/v1/completions", {"prompt": "a"})["model"] == "new"
        assert answer(gateway, "POST", "/v1/chat/completions", {**ASK, "model": "fake"})[0] == 404
