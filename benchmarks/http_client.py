"""A client that costs less than the server that it measures: one kept connection, JSON, and answers of a known length.

A general client spends more time on a request than the server does, and would then be what is measured.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """A connection to the server at `url`, which is made by the first request, and anew after it broke."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._host, self._port = parts.hostname, parts.port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str) -> Answer:
        return await self._request("GET", path, b"")

    async def post(self, path: str, body: object, *, key: str) -> Answer:
        headers = f"Content-Type: application/json\r\nIdempotency-Key: {key}\r\n"
        return await self._request("POST", path, json.dumps(body).encode(), headers)

    async def _request(self, method: str, path: str, body: bytes, headers: str = "") -> Answer:
        """Raises OSError or EOFError if the connection breaks."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=1024 * 1024)
        reader, writer = self._streams
        try:
            head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
            writer.write(head.encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(answer.partition("\r\ncontent-length:")[2].partition("\r\n")[0])
            found = Answer(int(answer.split(" ", 2)[1]), await reader.readexactly(length))
        except BaseException:
            self.close()
            raise
        if "\r\nconnection: close" in answer:
            self.close()
        return found

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
