"""`serve`: the HTTP server of a ledger."""

from __future__ import annotations

import errno
import shlex
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from chatledger.cli.exit_codes import ExitCode, UsageError, say
from chatledger.cli.options import KEY_FILE, Debug, Tenant, Url, file_path, in_ledger, require_files, run

if TYPE_CHECKING:
    from chatledger.ledger import Ledger

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
Tokens = Annotated[
    str | None,
    typer.Option("--tokens", metavar="FILE", help="File with the tokens, as `chatledger token add` writes it."),
]


def add_to(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    url: Url = None,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="HOST", help="Address to listen on; --tokens is needed for others than the loopback."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port to listen on; 0 for a free one.")
    ] = 8484,
    uds: Annotated[
        str | None,
        typer.Option(
            "--uds", metavar="PATH", help="Listen on a socket at this path instead, which no other user may open."
        ),
    ] = None,
    tokens: Tokens = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Accept only requests to this name. Repeat it for more."),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option("--cors", metavar="ORIGIN", help="Let pages of this site call the API. Repeat it for more sites."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, max=64, help="Number of processes.")] = 1,
    root_path: Annotated[
        str, typer.Option("--root-path", metavar="PATH", help="The path at which a reverse proxy serves this server.")
    ] = "",
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="NAME", help="Load this format of another package. Repeat it for more."),
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the page for people at /.")] = True,
    ids: Annotated[
        Literal["client", "server"],
        typer.Option(
            "--ids",
            help="Who makes the ids that users' tokens store under. server: nobody can find out or take others' ids.",
        ),
    ] = "client",
    service: Annotated[
        str | None,
        typer.Option(
            "--service",
            metavar="FILE",
            help="Serve /agent-service to clients of an agent service. The JSON file has its agents and models.",
        ),
    ] = None,
    max_body: Annotated[
        int, typer.Option("--max-body", metavar="BYTES", min=1, help="Maximum size of a request's body.")
    ] = 16 * 1024 * 1024,
    max_streams: Annotated[
        int,
        typer.Option("--max-streams", metavar="N", min=0, help="Maximum number of event streams of a process."),
    ] = 200,
    max_streams_per_caller: Annotated[
        int,
        typer.Option(
            "--max-streams-per-caller",
            metavar="N",
            min=0,
            help="Maximum number of them of one caller in a process.",
        ),
    ] = 50,
    migrate: Annotated[
        bool, typer.Option("--migrate", help="First create the tables, or migrate them to this release.")
    ] = False,
    tenant: Tenant = "default",
    debug: Debug = False,
) -> None:
    """Serve the conversations over HTTP: an API under /v1, the OpenAI Conversations API, and a page for people at /.

    Without --tokens the server listens on this machine only, and whoever can reach it sees every conversation of the
    tenant. It then refuses what a proxy or a tunnel passes on. With --tokens each token names its tenant and its user.
    A socket of --uds has mode 600: it lets in no other user of the machine. SIGTERM ends the server after the requests
    that it is working on.

    Example: chatledger token add --tokens tokens.json --user ada; chatledger serve --tokens tokens.json --host 0.0.0.0
    """

    def command() -> int:
        if tokens is None and host not in _LOOPBACK:
            raise UsageError(f"{host} can be reached from other machines: give --tokens FILE, or listen on 127.0.0.1")
        if tokens is None and allow_host:
            raise UsageError("--allow-host needs --tokens: without tokens only this machine is served")
        require_files([file for file in (tokens, service) if file is not None])
        if root_path and (not root_path.startswith("/") or root_path.endswith("/") or "//" in root_path):
            raise UsageError(f"--root-path must be a path such as /chat, not {root_path!r}")
        _serve(migrate=migrate)
        return ExitCode.OK

    def _serve(*, migrate: bool) -> None:
        try:
            import uvicorn

            from chatledger.server.process import ServeOptions, app
            from chatledger.server.uds import listen_at
        except ImportError:
            from chatledger.errors import MissingExtra

            raise MissingExtra("server", "chatledger serve") from None
        if migrate:
            from chatledger.admin import migrate as migrate_schema

            migrate_schema(url)
        elif (path := file_path(url)) is not None and not Path(path).exists():
            from chatledger.errors import StorageError

            raise StorageError(
                f"there is no database {path}; check --url, or create it: "
                f"chatledger serve --url {shlex.quote(path)} --migrate"
            )
        in_ledger(url, tenant, _nothing)  # finds a database that cannot be served now, and not in each worker
        say(f"encryption: {'off' if KEY_FILE.get() is None else 'on'}")
        ServeOptions(
            url=url,
            tenant=tenant,
            keys=KEY_FILE.get(),
            tokens=tokens,
            hosts=allow_host or None,
            cors=cors or [],
            page=page,
            uds=uds is not None,
            formats=formats or [],
            ids=ids,
            service=service,
            limits={"body": max_body, "streams": max_streams, "caller_streams": max_streams_per_caller},
        ).to_environment()
        listener = None if uds is None else listen_at(uds)
        free = 0 if uds is not None else _free(host, port)
        app()  # finds a wrong option now, and not in each worker
        if page and uds is None:
            say(f"open http://{f'[{host}]' if ':' in host else host}:{free}{root_path}/ in a browser; Ctrl+C ends it")
        uvicorn.run(
            "chatledger.server.process:app",
            factory=True,
            http="chatledger.server.protocol:Protocol",
            host=host,
            port=free,
            fd=None if listener is None else listener.fileno(),
            forwarded_allow_ips=None if uds is None else "*",  # the mode of the socket says whom to believe
            workers=workers,
            root_path=root_path,
            timeout_graceful_shutdown=30,  # as long as the slowest request may take
            timeout_keep_alive=75,  # longer than a proxy's 60: it must not send on a connection that we close
            backlog=64,  # asyncio accepts as many in one turn of the loop, in which nobody else is answered
            limit_concurrency=1_000,  # more connections get 503: a process may often open only 1,024 files
            access_log=False,
            server_header=False,
        )

    run(command, debug=debug)


def _free(host: str, port: int) -> int:
    """The port, or a free one for 0. Raises UsageError if another program has it."""
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as taken:
            number: int = taken.getsockname()[1]
            return number
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise UsageError(
            f"port {port} of {host} is taken; choose another with --port, or a free one with --port 0"
        ) from None


async def _nothing(ledger: Ledger) -> int:
    return ExitCode.OK
