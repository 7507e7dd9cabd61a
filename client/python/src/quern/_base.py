# SPDX-License-Identifier: MIT
"""The common part of both clients: the pool's address, requests to send, and the output read so far."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _certificate, _place, _request
from ._driver import Driver
from ._errors import BadRequest, Error, error_of
from ._request import Encoded
from ._tables import HISTOGRAMS
from ._types import Embedding, End, Histogram, Logprob, Model, Piece, Prompt, Ranking, RequestStatus, Result, Status, Worker

Name = str | os.PathLike[str]


def _histogram_of(name: str, numbers: Sequence[int]) -> Histogram:
    per_unit, bounds = HISTOGRAMS[name]
    total, *counts = numbers or [0] * (len(bounds) + 2)
    return Histogram(bounds, tuple(counts), total / per_unit)


def status_of(fields: Mapping[str, Any]) -> Status:
    """The answer to a status."""
    known = {key: value for key, value in fields.items() if key not in ("ref", "workers", "requests")}
    for_people = _request.printable
    workers = []
    for each in fields["workers"]:
        texts = {key: for_people(value) for key, value in each.items() if isinstance(value, str)}
        aliases = tuple(map(for_people, each["aliases"]))
        histograms = {key: _histogram_of(key, each[key]) for key in HISTOGRAMS}
        workers.append(Worker(**{**each, **texts, "aliases": aliases, **histograms}))
    requests = [
        RequestStatus(**{key: for_people(value) if isinstance(value, str) else value for key, value in each.items()})
        for each in fields["requests"] or ()
    ]
    version = for_people(known["version"])
    return Status(**{**known, "version": version}, workers=tuple(workers), requests=tuple(requests))


def embedding_of(pieces: Sequence[Piece]) -> Embedding:
    """The one that the last piece brings. Raises why there is none."""
    last = pieces[-1]
    assert last.end is not None
    if last.embedding:
        return Embedding(last.embedding, last.end)
    if last.end.reason == "deadline":
        raise error_of("deadline", "the deadline passed before the embedding was computed")
    raise error_of("worker_lost", "the pool no longer has the embedding")


def ranking_of(pieces: Sequence[Piece]) -> Ranking:
    """The same of a pair's scores."""
    found = embedding_of(pieces)
    return Ranking(found.vector, found.end)


class BaseClient:
    """A session with a pool. Do not instantiate: use `Client` or `AsyncClient`."""

    def __init__(
        self,
        endpoint: Name | None,
        server_key: Name | None,
        client_key: Name | None,
        timeout: float,
        patience: float,
    ) -> None:
        place = _place.endpoint_of(endpoint)
        if server_key is None and client_key is not None:
            raise BadRequest("client_key: requires the pool's server key")
        if server_key is not None and not place.startswith("tcp://"):
            raise BadRequest(f"{place} is not a TCP endpoint and takes no key")
        server = _certificate.server_key(server_key) if server_key is not None else None
        pair = _certificate.key_pair(client_key) if client_key is not None else None
        self._timeout = timeout
        self._driver = Driver(place, patience, server, pair)
        # A client that is forgotten, or left when the program ends, says goodbye too.
        self._stop = weakref.finalize(self, self._driver.stop)

    @property
    def endpoint(self) -> str:
        """The address of the pool's frontend."""
        return self._driver.endpoint

    @property
    def session(self) -> bytes:
        """This session's identity, for `attach` from another client. Keep it secret: it grants access to the output."""
        return self._driver.session.id

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that the pool served when the session was last opened."""
        return self._driver.session.models

    @property
    def is_open(self) -> bool:
        """Whether the session is open: false while it opens, and after it was closed or failed."""
        return self._driver.session.state == "open"

    def _encode(self, prompt: Prompt, parameters: Mapping[str, Any]) -> Encoded:
        """A new request, to be sent."""
        return self._encoded(_request.generation(prompt, parameters))

    def _encode_embedding(self, prompt: str | Sequence[int], parameters: Mapping[str, Any]) -> Encoded:
        """The same of a request for an embedding."""
        return self._encoded(_request.embedding(prompt, parameters))

    def _encode_ranking(self, query: str, document: str, parameters: Mapping[str, Any]) -> Encoded:
        """The same of a request for the scores of a pair of texts."""
        return self._encoded(_request.ranking(query, document, parameters))

    def _submit(self, encoded: Encoded, sink: Callable[[Piece], None]) -> None:
        """Sends it. Pieces go to the sink, from the driver's thread."""
        self._driver.call(lambda session, now: session.submit(encoded, sink, now))

    def _attach(self, request_id: bytes, owner: bytes | None, sink: Callable[[Piece], None]) -> None:
        """Asks for the output of a request of that session; None: of this one."""
        session = owner or self.session
        self._driver.call(lambda driven, now: driven.attach(request_id, session, sink, now))

    def _encoded(self, fields: Mapping[str, Any]) -> Encoded:
        return _request.encoded(os.urandom(16), fields, self._driver.session.limits)


class BaseStream:
    """A request's output, returned by `generate`, `chat` and `attach`. Do not instantiate."""

    def __init__(self, driver: Driver, request_id: bytes) -> None:
        self._driver = driver
        self._id = request_id
        self._end: End | None = None
        self._ended_for_us = False

    @property
    def id(self) -> bytes:
        """The request's identity, for `attach`."""
        return self._id

    @property
    def end(self) -> End | None:
        """How it ended, once the last piece was read."""
        return self._end

    def cancel(self) -> None:
        """Cancels the request. Output received before, and the end, can still be read."""
        if self._end is None:
            request_id = self._id
            self._driver.call(lambda session, now: session.cancel(request_id, now))

    def _leave(self) -> None:
        """Nobody reads on: what is made from here on is for nobody."""
        if self._ended_for_us:
            return
        self._ended_for_us = True
        with contextlib.suppress(Error):  # the client is closed, or of another process: nothing runs
            self.cancel()

    def _note(self, piece: Piece) -> Piece:
        """A piece that is read now. Raises what a request that failed ended with."""
        if piece.end is None:
            return piece
        self._end = piece.end
        self._ended_for_us = True
        if piece.end.reason == "error" and not piece.ids and not piece.text:
            raise error_of(piece.end.error, piece.end.text, piece.end.retry_after_ms)
        return piece

    def _check_ended_well(self) -> None:
        """Nothing is left to read: raises what a request ended with whose last piece had output too."""
        if self._end is not None and self._end.reason == "error":
            raise error_of(self._end.error, self._end.text, self._end.retry_after_ms)


class Gathered:
    """Pieces put together."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._ids: list[int] = []
        self._logprobs: list[tuple[Logprob, ...]] = []

    def add(self, piece: Piece) -> None:
        """The next one."""
        self._texts.append(piece.text)
        self._ids.extend(piece.ids)
        self._logprobs.extend(piece.logprobs)

    def result(self, end: End) -> Result:
        """The whole."""
        return Result("".join(self._texts), tuple(self._ids), tuple(self._logprobs), end)
