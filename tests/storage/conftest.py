"""The storage suite on whatever PostgreSQL is asked for: plain, or hash-partitioned by tenant.

CHATLEDGER_TEST_PARTITIONS=4 makes each table of its template in four parts, which is what stands in for a database that
is distributed by tenant.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from chatledger.admin import migrate
from tests.conftest import Database
from tests.migrations.access import connected
from tests.migrations.partitions import create_partitioned_schema
from tests.postgres import Server

PARTITIONS = int(os.environ.get("CHATLEDGER_TEST_PARTITIONS", "0"))


@pytest.fixture(scope="session")
def pg_template(pg_server: Server) -> Iterator[str]:
    with pg_server.database() as url:
        if PARTITIONS:
            template = Database("postgresql", url)
            connected(template, lambda connection: create_partitioned_schema(connection, partitions=PARTITIONS))
        else:
            migrate(url)
        yield url
