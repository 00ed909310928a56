"""A socket in the file system to listen on, which only the user of the server can reach."""

from __future__ import annotations

import errno
import os
import socket
import stat

from chatledger.errors import InvalidArgument


def listen_at(path: str) -> socket.socket:
    """A socket that is bound to the path, with mode 600. Takes the place of a socket that nobody listens on. Raises
    InvalidArgument if something else stands there.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise InvalidArgument("uds", "is a path, and this system has no sockets in the file system")
    _remove_what_a_dead_server_left(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # so that nobody else can connect between bind and a chmod
    try:
        bound.bind(path)
        bound.listen()  # so that a server that starts meanwhile finds this one
    except OSError as error:
        bound.close()
        raise InvalidArgument("uds", f"cannot be made at {path}: {error.strerror or error}") from None
    finally:
        os.umask(before)
    return bound


def _remove_what_a_dead_server_left(path: str) -> None:
    try:
        status = os.lstat(path)
    except OSError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise InvalidArgument("uds", f"{path} exists and is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        refused = probe.connect_ex(path)
    if refused != errno.ECONNREFUSED:
        raise InvalidArgument("uds", f"another server listens at {path}")
    os.unlink(path)
