# SPDX-License-Identifier: MIT
"""The blocking client."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._base import BaseClient, BaseStream, Gathered, Name, embedding_of, ranking_of, status_of
from ._documents import documented
from ._driver import Driver
from ._errors import Error
from ._request import Encoded
from ._types import Embedding, Message, Piece, Prompt, Ranking, RequestStatus, Result, Status

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._tables import Parameters


class Stream(BaseStream, Iterator[Piece]):
    """A request's output, piece by piece: iterate over it. The last piece has an `end`.

    Unread output waits in memory; reading slowly loses nothing. Leaving a stream before its end (by breaking out of the
    loop, or at the end of a `with` block) cancels its request, unless it was sent with `keep_s`.
    """

    def __init__(self, driver: Driver, request_id: bytes, keeps: bool) -> None:
        super().__init__(driver, request_id)
        self._pieces: queue.SimpleQueue[Piece] = queue.SimpleQueue()
        self._keeps = keeps

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Piece:
        """The next piece. Raises the request's `Error` if it failed."""
        piece = self._note(self._pieces.get()) if self._end is None else None
        if piece is None:
            self._check_ended_well()
            raise StopIteration
        return piece

    def result(self) -> Result:
        """Reads to the end and returns the rest of the output."""
        gathered = Gathered()
        for piece in self:
            gathered.add(piece)
        assert self._end is not None
        return gathered.result(self._end)

    def text(self) -> str:
        """Reads to the end and returns the rest of the text."""
        return self.result().text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, wrong: BaseException | None, at: TracebackType | None) -> None:
        self.__del__()

    def __del__(self) -> None:
        if not getattr(self, "_keeps", True):
            self._leave()


class Client(BaseClient):
    """A session with a pool.

        with quern.Client() as client:
            for piece in client.chat([{"role": "user", "content": "What is Quern?"}], max_tokens=64):
                print(piece.text, end="", flush=True)

    `endpoint` is "ipc://PATH", "tcp://HOST:PORT", a pool's run directory (a path, or a text that begins with / or .),
    or None for the default one. `server_key` is the public key of an encrypting pool: 40 characters of Z85, or the path
    of a certificate. `client_key` is the path of this client's certificate with its secret key, for a pool that accepts
    only known clients. `timeout` limits the opening of the session, `patience` how long the client later waits for a
    pool that does not respond (both in seconds); then running requests end with `WorkerLost`, and unsent ones with
    `Unreachable`. The client keeps trying to reconnect: calls made after that work once the pool is back.

    Any number of requests may run at once, from any number of threads. A background thread keeps the session alive.
    Lost output is requested again; if the broker restarts, the session is reopened and its requests continue.

    Raises `Unreachable`, `NotAllowed`, `Unsupported`, `Overloaded` or `Draining` if the session cannot be opened.
    """

    def __init__(
        self,
        endpoint: Name | None = None,
        *,
        server_key: Name | None = None,
        client_key: Name | None = None,
        timeout: float = 5.0,
        patience: float = 30.0,
    ) -> None:
        super().__init__(endpoint, server_key, client_key, timeout, patience)
        opened: queue.SimpleQueue[Error | None] = queue.SimpleQueue()
        self._driver.when_open(opened.put)
        try:
            wrong = opened.get(timeout=timeout)
        except queue.Empty:
            wrong = self._driver.no_answer(timeout)
        except BaseException:
            self.close()
            raise
        if wrong is not None:
            self.close()
            raise wrong

    @documented
    def generate(self, prompt: Prompt, **parameters: Unpack[Parameters]) -> Stream:
        """Sends a request and returns the stream of its output.

        `prompt` is a text, a list of token ids, or a list of messages, which go through the model's chat template.
        Requests run concurrently: each is sent by this call, not when its stream is read.

        Raises `BadRequest` or `TooLong` for errors found by the client; errors of the pool are raised by the stream.
        """
        return self._send(self._encode(prompt, parameters), bool(parameters.get("keep_s")))

    def _send(self, encoded: Encoded, keeps: bool) -> Stream:
        stream = Stream(self._driver, encoded.request_id, keeps)
        self._submit(encoded, stream._pieces.put)  # and not the stream itself, which shall end when nobody has it
        return stream

    @documented
    def chat(self, messages: Sequence[Message], **parameters: Unpack[Parameters]) -> Stream:
        """Like `generate`, with messages, which go through the model's chat template.

        client.chat([{"role": "user", "content": "Hello"}]).text()
        """
        return self.generate(messages, **parameters)

    def embed(
        self,
        prompt: str | Sequence[int],
        *,
        model: str = "",
        special: bool = False,
        priority: int = 0,
        deadline_ms: int = 0,
    ) -> Embedding:
        """The embedding of a text or of token ids. Waits for the result.

        `special`: parse control tokens in the text; the other arguments are those of `generate`.
        Raises `Unsupported` if no worker of the pool makes embeddings.
        """
        parameters = {"model": model, "special": special, "priority": priority, "deadline_ms": deadline_ms}
        return embedding_of(list(self._send(self._encode_embedding(prompt, parameters), False)))

    def rank(self, query: str, document: str, *, model: str = "", priority: int = 0, deadline_ms: int = 0) -> Ranking:
        """How well a document answers a query, with a model that ranks (`Model.ranks`). Waits for the result.

        Sort documents by their `score`. Raises `Unsupported` if the pool's model does not rank.
        """
        parameters = {"model": model, "priority": priority, "deadline_ms": deadline_ms}
        return ranking_of(list(self._send(self._encode_ranking(query, document, parameters), False)))

    def attach(self, request_id: bytes, session: bytes | None = None) -> Stream:
        """Takes over a request that was sent with `keep_s`, from its first output on. `session` is that of the client
        that sent it; None: this client's. If the request no longer exists, the stream ends with `UnknownRequest`."""
        stream = Stream(self._driver, request_id, True)
        self._attach(request_id, session, stream._pieces.put)
        return stream

    def status(self, timeout: float = 5.0) -> Status:
        """The status of the pool. Raises `NoAnswer` after `timeout` seconds."""
        return status_of(self._ask("status", {}, timeout))

    def requests(self, request_id: str = "", *, most: int = 1024, timeout: float = 5.0) -> tuple[RequestStatus, ...]:
        """The unfinished requests, oldest first: all of them for a client in the run directory, else this client's own.
        `request_id`: only those with this name. Raises `NoAnswer` after `timeout` seconds."""
        return status_of(self._ask("status", {"requests": most, "request_id": request_id}, timeout)).requests

    def tokenize(
        self, text: str, *, model: str = "", special: bool = False, bare: bool = False, timeout: float = 30.0
    ) -> list[int]:
        """The token ids of a text. `special`: parse control tokens in the text; `bare`: without BOS and EOS. Raises
        `NoAnswer` after `timeout` seconds."""
        fields = {"text": text, "model": model, "special": special, "bare": bare}
        return list(self._ask("tokenize", fields, timeout)["ids"])

    def detokenize(self, ids: Sequence[int], *, model: str = "", special: bool = False, timeout: float = 30.0) -> str:
        """The text of token ids; bytes that are not UTF-8 become U+FFFD. `special`: include control tokens by name.
        Raises `NoAnswer` after `timeout` seconds."""
        fields = {"ids": list(ids), "model": model, "special": special}
        return str(self._ask("detokenize", fields, timeout)["text"])

    def _ask(self, kind: str, fields: Mapping[str, Any], timeout: float) -> Mapping[str, Any]:
        answers: queue.SimpleQueue[Mapping[str, Any] | Error] = queue.SimpleQueue()
        self._driver.call(lambda session, now: session.ask(kind, fields, answers.put, timeout, now))
        answer = answers.get()
        if isinstance(answer, Error):
            raise answer
        return answer

    def close(self) -> None:
        """Closes the session. The pool ends its running requests, those with `keep_s` after that time. Streams that are
        still being read end with `Closed`."""
        self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, wrong: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<quern.Client of {self.endpoint}, {'open' if self.is_open else 'not open'}>"
