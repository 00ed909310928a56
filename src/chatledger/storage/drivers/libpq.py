"""The parameters of a PostgreSQL URL, as psql and every hosting service write them: those of libpq.

asyncpg knows most of them, but only in an address that it reads itself; SQLAlchemy hands it each parameter of a URL as
an argument, where it has other names for some and none for most. What is none of either is a setting of the session,
which the server refuses by name if it has none. What asyncpg cannot do is refused before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import URL

from chatledger.errors import StorageError

_IN_ADDRESS = frozenset(
    [
        "gsslib",
        "krbsrvname",
        "passfile",
        "ssl_max_protocol_version",
        "ssl_min_protocol_version",
        "sslcert",
        "sslcrl",
        "sslkey",
        "sslmode",
        "sslnegotiation",
        "sslpassword",
        "sslrootcert",
        "target_session_attrs",
    ]
)
"""What asyncpg reads in an address as libpq does."""
_FILES = frozenset(["sslcert", "sslcrl", "sslkey", "sslrootcert"])
_NOT_AT_ALL = {"channel_binding": ("disable", "prefer"), "gssencmode": ("disable", "prefer")}
"""What asyncpg has not, with the values that can do without."""
_NUMBERS: dict[str, Callable[[str], float]] = {
    "command_timeout": float,
    "connect_timeout": float,
    "max_cacheable_statement_size": int,
    "max_cached_statement_lifetime": int,
    "prepared_statement_cache_size": int,
    "statement_cache_size": int,
    "timeout": float,
}
_DRIVERS = frozenset(["host", "port", "user", "password", "database", "ssl", "service", "servicefile"])
"""What SQLAlchemy and asyncpg take as arguments."""


def connect_arguments(url: URL) -> tuple[URL, dict[str, Any]]:
    """The URL without its parameters but for those that say where the server is, and the arguments of `connect` that
    they stand for. Raises StorageError with the name of one that cannot be honoured, never with its value.
    """
    settings: dict[str, str] = {}
    arguments: dict[str, Any] = {"server_settings": settings}
    address: dict[str, str] = {}
    left: dict[str, Any] = {}
    for name, value in url.query.items():
        if name in _IN_ADDRESS:
            address[name] = _one(name, value)
            _refuse_unless(name not in _FILES or Path(address[name]).exists(), f"there is no such file as its {name}")
        elif name in _NUMBERS:
            arguments["timeout" if name == "connect_timeout" else name] = _number(name, _one(name, value))
        elif name in _NOT_AT_ALL:
            _refuse_unless(_one(name, value) in _NOT_AT_ALL[name], f"{name} is not supported by asyncpg; leave it out")
        elif name in _DRIVERS:
            left[name] = value
        else:
            settings[name] = _one(name, value)
    if address:
        arguments["dsn"] = f"postgresql:///?{urlencode(address)}"
    return url.set(query=left), arguments


def _one(name: str, value: str | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        raise StorageError(f"not a PostgreSQL URL: it has {name} more than once")
    return value


def _number(name: str, value: str) -> float:
    try:
        return _NUMBERS[name](value)
    except ValueError:
        raise StorageError(f"not a PostgreSQL URL: {name} must be a number") from None


def _refuse_unless(fine: bool, detail: str) -> None:
    if not fine:
        raise StorageError(f"not a PostgreSQL URL that can be used: {detail}")
