"""What one client may take of the server."""

from __future__ import annotations

from dataclasses import dataclass

from chatledger.arguments import INT, NUMBER, require, require_between

_MIB = 1024 * 1024
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits of a server. A request beyond one of them gets a problem that names the limit."""

    body: int = 16 * _MIB
    """Maximum size of a request's body in bytes, 16 MiB by default."""
    page: int = 200
    """Maximum number of items of a page, 200 by default. A request that asks for none gets up to 50."""
    caller_requests: int = 8
    """Maximum number of requests of one caller that are at work in a process, 8 by default. The others wait."""
    streams: int = 200
    """Maximum number of open event streams of a process, 200 by default."""
    caller_streams: int = 50
    """Maximum number of open event streams of one caller in a process, 50 by default."""
    request_seconds: float = 30
    """Maximum time until a response begins, and until the client takes each piece of it, in seconds, 30 by default."""
    stream_seconds: float = 3600
    """Time after which an event stream ends, in seconds, an hour by default. The client then reconnects. Every 15
    seconds its request is authenticated again.
    """

    def __post_init__(self) -> None:
        require(INT, body=self.body, page=self.page, caller_requests=self.caller_requests)
        require(INT, streams=self.streams, caller_streams=self.caller_streams)
        require(NUMBER, request_seconds=self.request_seconds, stream_seconds=self.stream_seconds)
        require_between(1, 1024 * _MIB, body=self.body)
        require_between(1, 1_000, page=self.page)
        require_between(1, 100_000, caller_requests=self.caller_requests)
        require_between(0, 100_000, streams=self.streams, caller_streams=self.caller_streams)
        require_between(0.001, _DAY, request_seconds=self.request_seconds, stream_seconds=self.stream_seconds)
