# SPDX-License-Identifier: MIT
"""What can go wrong, as classes: one for each name of an error in the protocol, and those of the client itself."""

from __future__ import annotations


class Error(Exception):
    """The root of all that this package raises on its own account. `name` is the error's name in the protocol."""

    name = "error"


class BadRequest(Error, ValueError):
    """A value makes no sense, or is of the wrong type; the text names it."""

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
    """The request was lost with its worker, its broker or the connection; what had come of it is good."""

    name = "worker_lost"


class DeadlineExceeded(Error, TimeoutError):
    """The deadline passed before the pool took the request."""

    name = "deadline"


class Conflict(Error):
    """The id is in use with another body."""

    name = "conflict"


class Unsupported(Error):
    """No common version of the protocol, or a required feature is not there."""

    name = "unsupported"


class UnknownRequest(Error, LookupError):
    """There is no request of that id, or no longer."""

    name = "unknown_request"


class Draining(Error):
    """The pool is shutting down and takes no new work."""

    name = "draining"


class HelloRequired(Error):
    """The broker does not know this session. The client opens it again by itself; nobody should see this."""

    name = "hello_required"


class ModelError(Error):
    """The model produced nothing that can be sampled, or the device failed."""

    name = "model_error"


class InternalError(Error):
    """A defect of Quern."""

    name = "internal"


class Unreachable(Error, ConnectionError):
    """No pool there, or it does not answer."""

    name = "unreachable"


class NotAllowed(Error, PermissionError):
    """The run directory may not be trusted, or the pool does not know this client's key."""

    name = "not_allowed"


class Closed(Error):
    """The client was closed."""

    name = "closed"


class NoAnswer(Error, TimeoutError):
    """A question to the pool was not answered in time."""

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
