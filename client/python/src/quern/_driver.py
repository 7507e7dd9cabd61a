# SPDX-License-Identifier: MIT
"""A thread that has the sockets and the clock, and drives a session with them.

One thread for each client, whichever face it has (`Client`, `AsyncClient`). So the session lives while the program
computes, or sleeps, or its event loop is busy: pings go out, output is taken from the stream and waits in memory for
whoever reads it. What others want of the session they put into a queue, and wake the thread; nobody but the thread
touches session or sockets. Nothing is dropped when a socket is full: what goes out waits in `session.out`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

import zmq
from zmq.utils.monitor import recv_monitor_message

from . import _tables
from ._errors import BadRequest, Closed, Error, Unreachable
from ._session import Session

BATCH = 256  # messages taken from a socket before the other is looked at
BUSY, IDLE = 20, 250  # milliseconds between two looks at the timers
GOODBYE = 200  # milliseconds for what is still to go out

Command = Callable[[Session, float], None]


class Driver:
    """Session and sockets of one client."""

    def __init__(
        self, endpoint: str, patience: float, server_key: str | None, client_key: tuple[str, str] | None
    ) -> None:
        self.endpoint = endpoint
        self.encrypted = server_key is not None
        self._pid = os.getpid()
        self._commands: deque[Command] = deque()
        self._lock = threading.RLock()  # a stream that is collected in here calls in here
        self._closing = False
        self._waiters: list[Callable[[Error | None], None]] = []
        self._keys = server_key, client_key
        self._times_given_up = 0
        self._context = zmq.Context()
        self._wake_in, self._wake_out = socket.socketpair()
        try:
            self.session = Session(endpoint, time.monotonic(), patience)
            self._connect()
        except zmq.ZMQError as wrong:
            self._context.destroy(linger=0)
            self._wake_in.close()
            self._wake_out.close()
            raise BadRequest(f"{endpoint}: {wrong.strerror}") from None
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="quern", daemon=True)
        self._thread.start()

    def _connect(self) -> None:
        """Makes the sockets. The stream is connected to when the broker has told where it is."""
        self._dealer, self._stream = self._socket(zmq.DEALER), self._socket(zmq.SUB)
        self._stream.rcvhwm = 65536
        self._monitor: zmq.Socket[bytes] | None = None
        if self.encrypted:
            self._monitor = self._dealer.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_AUTH)
        self._stream.subscribe(self.session.id)
        self._stream_endpoint: str | None = None
        self._dealer.connect(self.endpoint)
        self._poller = zmq.Poller()
        for readable in (self._wake_out.fileno(), self._dealer, self._stream):
            self._poller.register(readable, zmq.POLLIN)
        if self._monitor is not None:
            self._poller.register(self._monitor, zmq.POLLIN)

    def _disconnect(self, linger: int) -> None:
        """Closes the sockets; what is to go out has so many milliseconds."""
        if self._monitor is not None:
            self._dealer.disable_monitor()
            self._monitor.close(linger=0)
        self._dealer.close(linger=linger)
        self._stream.close(linger=0)

    def _socket(self, kind: int) -> zmq.Socket[bytes]:
        server_key, client_key = self._keys
        made = self._context.socket(kind)
        made.linger = 0
        made.sndhwm = made.rcvhwm = 4096
        made.maxmsgsize = _tables.MAX_BYTES
        # For TCP: else a lost SYN is repeated after 1, 2, 4 … s when a host is back.
        made.connect_timeout = 1000
        made.reconnect_ivl, made.reconnect_ivl_max = 20, 100
        # A machine that starts anew closes no connection. The DEALER finds out when it says something; the stream
        # never says anything, so TCP asks for it, well within the patience.
        made.tcp_keepalive, made.tcp_keepalive_idle, made.tcp_keepalive_intvl, made.tcp_keepalive_cnt = 1, 5, 2, 5
        # For an address only: of a name that has one of each kind, libzmq would take the one of IPv6.
        made.ipv6 = self.endpoint.startswith("tcp://[")
        if server_key is not None:
            public, secret = client_key or tuple(key.decode() for key in zmq.curve_keypair())
            made.curve_serverkey = server_key.encode()
            made.curve_publickey = public.encode()
            made.curve_secretkey = secret.encode()
        return made

    # ---- from any thread ----

    def call(self, command: Command) -> None:
        """Has the thread do something with the session. `Closed` when there is no thread any more."""
        if os.getpid() != self._pid:
            raise Closed(f"this client belongs to the process that made it ({self._pid}); make one in this process")
        with self._lock:
            if self._closing:
                raise Closed("the client was closed")
            self._commands.append(command)
        self._wake()

    def when_open(self, waiter: Callable[[Error | None], None]) -> None:
        """Calls back, from the thread, when the session is open, or will never be."""
        self.call(lambda session, now: self._waiters.append(waiter))

    def no_answer(self, timeout: float) -> Error:
        """Who cannot be decrypted is dropped without a word, so what it may have been is all that can be said."""
        if self.session.state == "join":
            where = self.session.stream_endpoint
            return Unreachable(
                f"the broker at {self.endpoint} responds, but its stream {where} does not (waited {timeout:g} s)"
            )
        hint = ""
        if self.encrypted:
            hint = "; the server key may belong to another pool"
        elif self.endpoint.startswith("tcp://"):
            hint = "; it may require a server key"
        return Unreachable(f"no broker responds at {self.endpoint} (waited {timeout:g} s{hint})")

    def stop(self) -> None:
        """Says goodbye, ends everything that runs and waits for the thread. A second call does nothing."""
        if os.getpid() != self._pid:
            return  # a fork: neither the thread nor the connection is ours
        with self._lock:
            self._closing = True
        self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _wake(self) -> None:
        # A full pipe wakes too; a closed one has nobody to wake.
        with contextlib.suppress(OSError):
            self._wake_in.send(b"\0")

    # ---- the thread ----

    def _run(self) -> None:
        try:
            while not self._closing:
                self._round()
        except Exception as reason:
            self.session.fall_over(reason)
        finally:
            with self._lock:
                self._closing = True
            self._finish()

    def _round(self) -> None:
        session = self.session
        busy = session.requests or session.state != "open" or self._waiters or session.has_questions()
        self._poller.modify(self._dealer, zmq.POLLIN | (zmq.POLLOUT if session.out else 0))
        self._poller.poll(BUSY if busy else IDLE)
        self._take_commands()
        self._take_messages()
        self._take_frames()
        if self._monitor is not None and self._monitor.poll(0):
            recv_monitor_message(self._monitor)
            session.forbid(f"the pool at {self.endpoint} does not know this client's key")
        session.tick(time.monotonic())
        if session.stale:
            session.stale = False
            self._disconnect(0)
            self._connect()
        self._follow_stream()
        self._flush()
        if session.state == "open" or session.broken is not None:
            self._tell_waiters(session.broken)
        elif self._times_given_up != session.times_given_up:
            self._tell_waiters(session.given_up)
        self._times_given_up = session.times_given_up

    def _tell_waiters(self, wrong: Error | None) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter(wrong)

    def _take_commands(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_out.recv(4096)
        while self._commands:
            self._commands.popleft()(self.session, time.monotonic())

    def _take_messages(self) -> None:
        for _ in range(BATCH):
            try:
                parts = self._dealer.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            if len(parts) == 1:
                self.session.received(parts[0], time.monotonic())

    def _take_frames(self) -> None:
        for _ in range(BATCH):
            try:
                parts = self._stream.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            if len(parts) == 2:
                self.session.published(parts[0], parts[1], time.monotonic())

    def _follow_stream(self) -> None:
        """Connects to the stream that the broker told."""
        wanted = self.session.stream_endpoint
        if wanted is None or wanted == self._stream_endpoint or self.session.broken is not None:
            return
        try:
            if self._stream_endpoint is not None:
                self._stream.disconnect(self._stream_endpoint)
            self._stream_endpoint = None
            self._stream.connect(wanted)
            self._stream_endpoint = wanted
        except zmq.ZMQError as wrong:
            self.session.lose(f"the pool's stream {wanted}: {wrong.strerror}")

    def _flush(self) -> None:
        out = self.session.out
        while out:
            try:
                self._dealer.send(out[0], zmq.NOBLOCK)
            except zmq.Again:
                return
            out.popleft()

    def _finish(self) -> None:
        self._take_commands()
        self.session.close()
        self._tell_waiters(self.session.broken)
        with contextlib.suppress(zmq.ZMQError):
            self._flush()
            self._disconnect(GOODBYE)
        self._context.destroy()
        self._wake_in.close()
        self._wake_out.close()
