"""A proxy on loopback that holds every byte back for a while in each direction, where round trips show.

    python -m benchmarks.delay HOST PORT SECONDS        prints its own port, and runs until its input ends

A process of its own, so that it does not compete for an interpreter lock; threads and sleep instead of an event loop,
whose timers are good to a millisecond at best.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue

from sqlalchemy import make_url

DELAY = 0.001


def main() -> None:
    host, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=_serve, args=(listener, (host, port), seconds), daemon=True).start()
    sys.stdin.read()


def _serve(listener: socket.socket, upstream: tuple[str, int], seconds: float) -> None:
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(upstream)
        for source, target in ((client, server), (server, client)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            chunks: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
            threading.Thread(target=_take, args=(source, chunks, seconds), daemon=True).start()
            threading.Thread(target=_give, args=(target, chunks), daemon=True).start()


def _take(source: socket.socket, chunks: SimpleQueue[tuple[float, bytes]], seconds: float) -> None:
    data = b"-"
    while data:
        try:
            data = source.recv(1 << 18)
        except OSError:
            data = b""
        chunks.put((time.perf_counter() + seconds, data))


def _give(target: socket.socket, chunks: SimpleQueue[tuple[float, bytes]]) -> None:
    with contextlib.suppress(OSError):
        while True:
            due, data = chunks.get()
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
            time.sleep(max(0.0, due - time.perf_counter()))
            target.sendall(data)


@contextlib.contextmanager
def delayed(url: str, seconds: float = DELAY) -> Iterator[str]:
    """The URL of the same database at the far end of a slow line."""
    address = make_url(url)
    target = [address.host or "127.0.0.1", str(address.port or 5432)]
    command = [sys.executable, "-m", "benchmarks.delay", *target, str(seconds)]
    proxy = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert proxy.stdin is not None
    assert proxy.stdout is not None
    try:
        near = address.set(host="127.0.0.1", port=int(proxy.stdout.readline()))
        yield near.render_as_string(hide_password=False)
    finally:
        proxy.stdin.close()
        proxy.wait(timeout=10)
        proxy.stdout.close()


if __name__ == "__main__":
    main()
