# SPDX-License-Identifier: MIT
"""Exceptions: one for each error of the protocol, and those of the client itself."""

from __future__ import annotations


class Error(Exception):
    """Base class of all exceptions of this package. `name` is the error's name in the protocol."""

    name = "error"


class BadRequest(Error, ValueError):
    """A value is invalid or has the wrong type; the text names it."""

    name = "bad_request"


class TooLong(Error, ValueError):
    """Prompt and max_tokens exceed what the model or the pool can hold; the text has both numbers."""

    name = "too_long"


class Overloaded(Error):
    """The pool, or this session's share of it, is full. Try again after `retry_after` seconds."""

    name = "overloaded"

    def __init__(self, text: str, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class NoWorker(Error):
    """No worker serves this model, and none is starting."""

    name = "no_worker"


class WorkerLost(Error):
    """The request was lost with its worker, its broker or the connection; output received before is valid."""

    name = "worker_lost"


class DeadlineExceeded(Error, TimeoutError):
    """The deadline passed before the pool accepted the request."""

    name = "deadline"


class Conflict(Error):
    """The id belongs to a request with another body."""

    name = "conflict"


class Unsupported(Error):
    """No common version of the protocol, or a required feature is missing."""

    name = "unsupported"


class UnknownRequest(Error, LookupError):
    """No request has this id, or it no longer exists."""

    name = "unknown_request"


class Draining(Error):
    """The pool is shutting down and accepts no new requests."""

    name = "draining"


class HelloRequired(Error):
    """The broker does not know this session. The client reopens it by itself; this is never raised."""

    name = "hello_required"


class ModelError(Error):
    """The model produced no finite logits, or the device failed."""

    name = "model_error"


class InternalError(Error):
    """A bug in Quern."""

    name = "internal"


class Unreachable(Error, ConnectionError):
    """No pool is running there, or it does not respond."""

    name = "unreachable"


class NotAllowed(Error, PermissionError):
    """The run directory is not trustworthy, or the pool does not know this client's key."""

    name = "not_allowed"


class Closed(Error):
    """The client was closed."""

    name = "closed"


class NoAnswer(Error, TimeoutError):
    """The pool did not answer a question in time."""

    name = "no_answer"


_BY_NAME: dict[str, type[Error]] = {
    each.name: each
    for each in (
        BadRequest, TooLong, Overloaded, NoWorker, WorkerLost, DeadlineExceeded, Conflict, Unsupported,
        UnknownRequest, Draining, HelloRequired, ModelError, InternalError, Unreachable, NotAllowed, Closed, NoAnswer,
    )
}  # fmt: skip


def error_of(name: str, text: str, retry_after_ms: int = 0) -> Error:
    """The exception for an error of the protocol. A name that is new to us is an Error of that name."""
    kind = _BY_NAME.get(name)
    if kind is Overloaded:
        return Overloaded(text, retry_after_ms / 1000)
    if kind is not None:
        return kind(text)
    unknown = Error(f"{name}: {text}")
    unknown.name = name
    return unknown
