"""`erasures`: list the tombstones that erasures left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from chatledger.cli.conversations.threads import print_page, say_damaged
from chatledger.cli.options import Cursor, Debug, Json, Limit, Tenant, Url, with_ledger
from chatledger.cli.output import moment, print_list

if TYPE_CHECKING:
    from chatledger.ledger import Ledger


def add_to(app: typer.Typer) -> None:
    app.command("erasures")(erasures)


def erasures(
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = None,
    tenant: Tenant = "default",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the tombstones of erased threads, users and tenants, newest first.

    A tombstone says what kind of thing was erased, when, and how many rows it had. It does not say whose they were.
    """

    async def work(ledger: Ledger) -> int:
        page = await ledger.erasures.list(limit=limit, cursor=cursor)
        if as_json:
            print_list([erasure.model_dump() for erasure in page], page.next_cursor)
        else:
            rows = [
                (
                    erasure.erasure_id,
                    erasure.kind,
                    f"{sum(erasure.rows.values()):,}",
                    f"{erasure.scores:,}",
                    moment(erasure.created_at),
                )
                for erasure in page
            ]
            print_page(("erasure", "kind", "rows", "scores kept", "erased"), rows, page, "no tombstones")
        return say_damaged(page.damaged)

    with_ledger(url, tenant, work, debug=debug, keyless=True)
