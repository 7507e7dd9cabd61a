# SPDX-License-Identifier: MIT
"""Talk to a pool of Quern from Python.

    import quern

    with quern.Client() as client:
        for piece in client.chat([{"role": "user", "content": "What is Quern?"}], max_tokens=64):
            print(piece.text, end="", flush=True)

`AsyncClient` is the same for asyncio. Errors of the pool are exceptions: `quern.Overloaded`, `quern.TooLong`, …; all
are subclasses of `quern.Error`.
"""

from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version

from ._asyncio import AsyncClient, AsyncStream
from ._client import Client, Stream
from ._errors import (
    BadRequest,
    Closed,
    Conflict,
    DeadlineExceeded,
    Draining,
    Error,
    HelloRequired,
    InternalError,
    ModelError,
    NoAnswer,
    NotAllowed,
    NoWorker,
    Overloaded,
    TooLong,
    UnknownRequest,
    Unreachable,
    Unsupported,
    WorkerLost,
)
from ._tables import Parameters
from ._types import Embedding, End, Histogram, Logprob, Message, Model, Piece, Progress, Prompt, Ranking, RequestStatus, Result, Status, Worker

try:
    __version__ = _version("quern")
except _PackageNotFoundError:  # used from a checkout
    __version__ = "0"

__all__ = [
    "AsyncClient",
    "AsyncStream",
    "BadRequest",
    "Client",
    "Closed",
    "Conflict",
    "DeadlineExceeded",
    "Draining",
    "Embedding",
    "End",
    "Error",
    "HelloRequired",
    "Histogram",
    "InternalError",
    "Logprob",
    "Message",
    "Model",
    "ModelError",
    "NoAnswer",
    "NoWorker",
    "NotAllowed",
    "Overloaded",
    "Parameters",
    "Piece",
    "Progress",
    "Prompt",
    "Ranking",
    "RequestStatus",
    "Result",
    "Status",
    "Stream",
    "TooLong",
    "UnknownRequest",
    "Unreachable",
    "Unsupported",
    "Worker",
    "WorkerLost",
]
