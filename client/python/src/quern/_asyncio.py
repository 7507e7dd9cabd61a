# SPDX-License-Identifier: MIT
"""The asyncio client.

The session has a separate thread (`_driver`), so it stays alive when the loop is busy; the loop is woken when output
arrives, once for everything that is waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
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


class _Inbox:
    """Pieces on their way from the thread to the loop. Either side may be ahead of the other."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pieces: deque[Piece] = deque()
        self._arrived = asyncio.Event()
        self._woken = False

    def put(self, piece: Piece) -> None:
        """From the thread. Whoever sees `_woken` knows that the loop has yet to look, after this piece is there."""
        self._pieces.append(piece)
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody reads
                self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        self._woken = False
        self._arrived.set()

    async def get(self) -> Piece:
        while not self._pieces:
            self._arrived.clear()
            if not self._pieces:
                await self._arrived.wait()
        return self._pieces.popleft()


class AsyncStream(BaseStream, AsyncIterator[Piece]):
    """A request's output, piece by piece: iterate over it with `async for`. The last piece has an `end`.

    Unread output waits in memory; reading slowly loses nothing. Leaving a stream before its end cancels its request,
    unless it was sent with `keep_s`. Only one task may read a stream.
    """

    def __init__(self, driver: Driver, request_id: bytes, keeps: bool) -> None:
        super().__init__(driver, request_id)
        self._inbox = _Inbox(asyncio.get_running_loop())
        self._keeps = keeps

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        """The next piece. Raises the request's `Error` if it failed."""
        piece = self._note(await self._inbox.get()) if self._end is None else None
        if piece is None:
            self._check_ended_well()
            raise StopAsyncIteration
        return piece

    async def result(self) -> Result:
        """Reads to the end and returns the rest of the output."""
        gathered = Gathered()
        async for piece in self:
            gathered.add(piece)
        assert self._end is not None
        return gathered.result(self._end)

    async def text(self) -> str:
        """Reads to the end and returns the rest of the text."""
        return (await self.result()).text

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, at: TracebackType | None
    ) -> None:
        self.__del__()

    def __del__(self) -> None:
        if not getattr(self, "_keeps", True):
            self._leave()


class AsyncClient(BaseClient):
    """A session with a pool, for asyncio. The arguments are those of `Client`.

        async with quern.AsyncClient() as client:
            async for piece in client.chat([{"role": "user", "content": "What is Quern?"}], max_tokens=64):
                print(piece.text, end="", flush=True)

    The session opens in the background; `async with`, or `await client.open()`, waits until it is open and raises what
    stands in its way.
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

    async def open(self) -> None:
        """Waits until the session is open. If it cannot be opened, closes the client and raises the reason."""
        try:
            wrong = await asyncio.wait_for(self._opened(), self._timeout)
        except asyncio.TimeoutError:
            wrong = self._driver.no_answer(self._timeout)
        except BaseException:
            await self.close()
            raise
        if wrong is not None:
            await self.close()
            raise wrong

    async def _opened(self) -> Error | None:
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[Error | None] = loop.create_future()
        self._driver.when_open(lambda wrong: _resolve(loop, opened, wrong))
        return await opened

    @documented
    def generate(self, prompt: Prompt, **parameters: Unpack[Parameters]) -> AsyncStream:
        """Sends a request and returns the stream of its output. Do not await this call.

        `prompt` is a text, a list of token ids, or a list of messages, which go through the model's chat template.
        Requests run concurrently: each is sent by this call, not when its stream is read.

        Raises `BadRequest` or `TooLong` for errors found by the client; errors of the pool are raised by the stream.
        """
        return self._send(self._encode(prompt, parameters), bool(parameters.get("keep_s")))

    def _send(self, encoded: Encoded, keeps: bool) -> AsyncStream:
        stream = AsyncStream(self._driver, encoded.request_id, keeps)
        self._submit(encoded, stream._inbox.put)  # and not the stream itself, which shall end when nobody has it
        return stream

    @documented
    def chat(self, messages: Sequence[Message], **parameters: Unpack[Parameters]) -> AsyncStream:
        """Like `generate`, with messages, which go through the model's chat template.

        await client.chat([{"role": "user", "content": "Hello"}]).text()
        """
        return self.generate(messages, **parameters)

    async def embed(
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
        stream = self._send(self._encode_embedding(prompt, parameters), False)
        return embedding_of([piece async for piece in stream])

    async def rank(
        self, query: str, document: str, *, model: str = "", priority: int = 0, deadline_ms: int = 0
    ) -> Ranking:
        """How well a document answers a query, with a model that ranks (`Model.ranks`). Waits for the result.

        Sort documents by their `score`. Raises `Unsupported` if the pool's model does not rank.
        """
        parameters = {"model": model, "priority": priority, "deadline_ms": deadline_ms}
        stream = self._send(self._encode_ranking(query, document, parameters), False)
        return ranking_of([piece async for piece in stream])

    def attach(self, request_id: bytes, session: bytes | None = None) -> AsyncStream:
        """Takes over a request that was sent with `keep_s`, from its first output on. `session` is that of the client
        that sent it; None: this client's. If the request no longer exists, the stream ends with `UnknownRequest`."""
        stream = AsyncStream(self._driver, request_id, True)
        self._attach(request_id, session, stream._inbox.put)
        return stream

    async def status(self, timeout: float = 5.0) -> Status:
        """The status of the pool. Raises `NoAnswer` after `timeout` seconds."""
        return status_of(await self._ask("status", {}, timeout))

    async def requests(
        self, request_id: str = "", *, most: int = 1024, timeout: float = 5.0
    ) -> tuple[RequestStatus, ...]:
        """The unfinished requests, oldest first: all of them for a client in the run directory, else this client's own.
        `request_id`: only those with this name. Raises `NoAnswer` after `timeout` seconds."""
        return status_of(await self._ask("status", {"requests": most, "request_id": request_id}, timeout)).requests

    async def tokenize(
        self, text: str, *, model: str = "", special: bool = False, bare: bool = False, timeout: float = 30.0
    ) -> list[int]:
        """The token ids of a text. `special`: parse control tokens in the text; `bare`: without BOS and EOS. Raises
        `NoAnswer` after `timeout` seconds."""
        fields = {"text": text, "model": model, "special": special, "bare": bare}
        return list((await self._ask("tokenize", fields, timeout))["ids"])

    async def detokenize(
        self, ids: Sequence[int], *, model: str = "", special: bool = False, timeout: float = 30.0
    ) -> str:
        """The text of token ids; bytes that are not UTF-8 become U+FFFD. `special`: include control tokens by name.
        Raises `NoAnswer` after `timeout` seconds."""
        fields = {"ids": list(ids), "model": model, "special": special}
        return str((await self._ask("detokenize", fields, timeout))["text"])

    async def _ask(self, kind: str, fields: Mapping[str, Any], timeout: float) -> Mapping[str, Any]:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Mapping[str, Any] | Error] = loop.create_future()
        self._driver.call(
            lambda session, now: session.ask(
                kind, fields, lambda answer: _resolve(loop, answered, answer), timeout, now
            )
        )
        answer = await answered
        if isinstance(answer, Error):
            raise answer
        return answer

    async def close(self) -> None:
        """Closes the session. The pool ends its running requests, those with `keep_s` after that time. Streams that are
        still being read end with `Closed`."""
        await asyncio.get_running_loop().run_in_executor(None, self._stop)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<quern.AsyncClient of {self.endpoint}, {'open' if self.is_open else 'not open'}>"


def _resolve(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], value: object) -> None:
    """From the thread: the future of a loop, if it is still waited for."""

    def settle() -> None:
        if not future.done():
            future.set_result(value)

    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(settle)
