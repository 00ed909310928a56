"""`reencrypt`: encrypt all data of a tenant with its current key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chatledger.cli.exit_codes import ExitCode, say
from chatledger.cli.options import Debug, Json, Tenant, Url, with_ledger
from chatledger.cli.output import print_json, print_table
from chatledger.cli.progress import share_bar

if TYPE_CHECKING:
    from chatledger.ledger import Ledger


def add_to(app: typer.Typer) -> None:
    app.command("reencrypt")(reencrypt)


def reencrypt(
    plaintext: Annotated[bool, typer.Option("--plaintext", help="Also encrypt values stored as plain text.")] = False,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Encrypt older data with the tenant's current key.

    Afterwards the older keys are no longer needed. The database may stay in use. After an interruption, run the command
    again to continue.

    Example: chatledger --keys keys.json reencrypt
    """

    async def work(ledger: Ledger) -> int:
        with share_bar("encrypting", quiet=as_json) as progress:
            rows = await ledger.reencrypt(progress=progress)
        if as_json:
            print_json({"rows": dict(rows)})
        elif rows:
            print_table(("table", "rows encrypted"), [(table, f"{count:,}") for table, count in rows.items()])
        else:
            say("nothing to encrypt: all data is encrypted with the current key")
        return ExitCode.OK

    with_ledger(url, tenant, work, debug=debug, plaintext=plaintext)
