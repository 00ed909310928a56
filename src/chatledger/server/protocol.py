"""The connections of `chatledger serve`: HTTP/1.1 by h11, with limits on what a request may cost before anybody knows
who sends it. The parser takes as long for a piece of a body as for a line of its head, however short it is.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any
from weakref import WeakKeyDictionary

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from chatledger.server.answers.json_response import to_json
from chatledger.server.problems import body_of_request

_READ = 16 * 1024
"""Bytes that the parser gets at once, so that it refuses a head before it has read much more than allowed."""
LARGEST_HEAD = 64 * 1024
"""Maximum bytes of a request's target and headers."""
MOST_HEADERS = 100
FREE_PIECES = 1_000
"""Pieces of a chunked body that may be as small as they like."""
SMALLEST_PIECE = 256
"""Bytes that the other pieces have at least, on average."""
PIECES_A_SECOND = 300
"""Pieces of any size that are free besides in each second of a body: a model's words come one at a time."""
HEAD_SECONDS = 10
"""Seconds in which the head of a request has come."""
STOP_SECONDS = 0.5
"""Seconds that a server which was told to stop waits on an idle connection for a request that is on its way."""
MOST_CONNECTIONS = 900
"""Connections of a process with which a new one ends another that waits for its client. `serve` answers 503 beyond
1,000 that do not wait.
"""
_WAITING: WeakKeyDictionary[Any, dict[Protocol, None]] = WeakKeyDictionary()
"""By the state of a server, its connections that wait for a request or for the rest of one, the longest wait first."""
_UNANSWERED = (h11.IDLE, h11.SEND_RESPONSE)


class Protocol(H11Protocol):
    """A connection. A request beyond a limit, or that is no HTTP, gets a problem, and the connection ends.

    A connection without a whole request costs its client nothing, and the process a file. So its head must come in
    time, and while there are many connections, each new one closes the one that waits the longest for its client.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn: Parser = Parser()
        self._head: asyncio.TimerHandle | None = None
        self._stops = False
        self._waiting: dict[Protocol, None] = _WAITING.setdefault(self.server_state, {})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= MOST_CONNECTIONS and self._waiting:
            oldest = next(iter(self._waiting))
            oldest.end_wait()  # it is lost in a later turn of the loop, and more connections may come in this one
            oldest.transport.abort()
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), _READ):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + _READ])
            if self.conn.their_state is h11.IDLE:
                if self._head is None:  # of a further request
                    self._await_head()
                continue
            self.end_wait()
            if self.conn.their_state is h11.SEND_BODY:
                self._waiting[self] = None  # behind the others, of which nothing came
            if self._stops and self.cycle is not None:
                self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._waiting[self] = None

    def shutdown(self) -> None:
        """The server was told to stop. The client cannot know it yet, so its next request may be on its way."""
        self._stops = True
        if self._has_request:
            super().shutdown()
        else:
            self.loop.call_later(STOP_SECONDS, self._end_idle)

    def _end_idle(self) -> None:
        if not self._has_request and not self.transport.is_closing():
            super().shutdown()

    @property
    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        self._waiting[self] = None
        self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def end_wait(self) -> None:
        """Something of a request came, or the connection has ended."""
        self._waiting.pop(self, None)
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in _UNANSWERED:
            status, kind, detail = self.conn.refusal
            body = to_json(body_of_request(status, kind, detail)).encode("ascii")
            headers = [
                ("content-type", "application/problem+json"),
                ("content-length", str(len(body))),
                ("cache-control", "no-store"),
                ("connection", "close"),
            ]
            answer = h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status])
            for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the application has nobody to answer any more
            self.cycle.message_event.set()
        self.transport.close()


class Parser(h11.Connection):
    """Reads requests. `refusal` says of the last error what the client gets: a status, a kind and a detail."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, LARGEST_HEAD)
        self.refusal = (400, "InvalidRequest", "it is no HTTP/1.1 request")
        self._pieces = self._bytes = 0
        self._began = 0.0

    def next_event(self) -> Any:
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == 431:
                self._refuse_head()
            raise
        if isinstance(event, h11.Request):
            self._begin(event)
        elif isinstance(event, h11.Data):
            self._count(event)
        return event

    def _begin(self, request: h11.Request) -> None:
        self._pieces = self._bytes = 0
        self._began = time.monotonic()
        headers = request.headers
        size = len(request.target) + sum(len(name) + len(value) for name, value in headers)
        if size > LARGEST_HEAD or len(headers) > MOST_HEADERS:
            self._refuse_head()

    def _refuse_head(self) -> None:
        most = f"at most {LARGEST_HEAD:,} bytes and {MOST_HEADERS} headers"
        self._refuse(431, "HeadTooLarge", f"the URL and the headers of a request have {most}")

    def _count(self, piece: h11.Data) -> None:
        self._pieces += piece.chunk_start
        self._bytes += len(piece.data)
        more = self._pieces - FREE_PIECES - self._bytes // SMALLEST_PIECE
        if more > 0 and more > PIECES_A_SECOND * (time.monotonic() - self._began):
            detail = f"after {FREE_PIECES:,} chunks, a fast body needs {SMALLEST_PIECE} bytes a chunk on average"
            self._refuse(413, "BodyTooLarge", detail)

    def _refuse(self, status: int, kind: str, detail: str) -> None:
        self.refusal = (status, kind, detail)
        raise h11.RemoteProtocolError(detail, error_status_hint=status)
