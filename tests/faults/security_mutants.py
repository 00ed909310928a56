"""Mutants of what keeps others out: encryption that cannot be forgotten, row-level security, the server's gate, files.

`mutants.py` runs them with the others.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from tests.faults.mutant import Mutant, put, reword

_ROWS = "../storage/rows/"
_SERVER = "../server/"


def store_the_first_message_without_a_record() -> None:
    from chatledger.storage.rows import encrypted

    put(encrypted, _record=lambda *_: None)


def require_nothing() -> None:
    from chatledger.storage.rows.encryption import CellEncryption

    CellEncryption.required = property(lambda self: False, lambda self, given: None)  # type: ignore[assignment,misc]


def trust_each_role_to_record() -> None:
    from chatledger.storage.rows import encrypted

    put(encrypted, _MAY_RECORD="SELECT true")


def record_a_distributed_database() -> None:
    from chatledger.storage.rows import encrypted

    reword(encrypted, "_record", "if sql.distributed:", "if False:")


def look_for_the_mark_of_the_tenant_only() -> None:
    from chatledger.storage.rows import encrypted

    reword(encrypted, "refuse_marked", "ENCRYPTED_TENANT", "MARKED_TENANT")


def look_for_no_record_on_the_coordinator() -> None:
    from chatledger.storage.rows import encrypted

    reword(encrypted, "refuse_recorded", "sql.distributed and", "False and")


def move_tips_without_a_condition() -> None:
    from chatledger.storage.append import write

    put(write, _WITHOUT_KEYS=write._WITH_KEYS)


def write_drafts_without_a_condition() -> None:
    from chatledger.storage.append import draft_rows, write

    put(draft_rows, tip_guard=lambda _: write._WITH_KEYS)


def write_groups_without_a_condition() -> None:
    from chatledger.storage.append import group_insert

    put(group_insert, UNLESS_ENCRYPTED="")


def give_all_tenants_one_key() -> None:
    from chatledger.storage.rows import keys
    from chatledger.storage.rows.derive import derive_key

    put(keys, derive_key=lambda secret, label, *_: derive_key(secret, label))


def record_what_a_role_does_not_see() -> None:
    from chatledger.storage.schema import row_security

    put(row_security, require_all_rows=lambda *_: None)


def open_as_the_owner() -> None:
    from chatledger.storage.schema import row_security

    reword(row_security, "agreed", "if any(table.is_own for table in tables):", "if False:")


def keep_the_login_of_a_revoked_token() -> None:
    from chatledger.server.callers.tokens import TokenFile

    find = TokenFile.find_entry
    known: dict[str, Any] = {}

    def remembered(self: Any, token_id: str) -> Any:
        known[token_id] = find(self, token_id) or known.get(token_id)
        return known[token_id]

    TokenFile.find_entry = remembered  # type: ignore[method-assign]


def end_no_login() -> None:
    from chatledger.server.callers.sessions import Session

    Session.is_over = property(lambda self: False)  # type: ignore[assignment]


def serve_what_a_proxy_passes_on() -> None:
    from chatledger.server.callers import local_only

    put(local_only, Headers=lambda scope: ())


def serve_other_machines() -> None:
    from chatledger.server.callers import local_only

    put(local_only, _is_loopback=lambda peer: True)


def start_without_keys() -> None:
    from chatledger.server.state import State

    async def anyway(self: Any, ledger: Any) -> None:
        return None

    State.require_keys = anyway  # type: ignore[method-assign]


def allow_intruders() -> None:
    from chatledger.storage.upgrade import intruders

    reword(intruders, "refuse_intruders", "if not intruders or", "if True or")


def follow_links() -> None:
    from chatledger.storage.drivers import new_file

    put(new_file, _NEW=os.O_CREAT | os.O_RDWR)


def read_secrets_that_others_may_write() -> None:
    from chatledger.storage.drivers import private_file

    put(private_file, _require_private=lambda *_: None)


def read_forms_of_any_size() -> None:
    from chatledger.server.requests import body_limit

    put(body_limit, _LOGIN=sys.maxsize, _FORM=sys.maxsize)


def read_bodies_of_any_number_of_values() -> None:
    from chatledger.models.json import Count
    from chatledger.server.requests import json_request

    put(json_request, scan=lambda body, *, deepest: Count())


def give_each_token_all_scopes() -> None:
    from chatledger.server.callers.access import Caller

    Caller.may = lambda self, needed: True  # type: ignore[method-assign]


def let_askers_write_what_they_like() -> None:
    from chatledger.server.callers import ask_scope

    reword(ask_scope, "refuse_all_but_questions", 'caller.may("write")', "True")


MUTANTS = (
    Mutant(
        "required-record",
        f"{_ROWS}test_required.py -k 'first_write_records and sqlite and create'",
        "the record that the first write with required keys makes",
        "assert False|AssertionError",
        store_the_first_message_without_a_record,
    ),
    Mutant(
        "required-plain",
        f"{_ROWS}test_required.py -k 'without_the_record and sqlite'",
        "refusing plain text where keys are required",
        "DID NOT RAISE",
        require_nothing,
    ),
    Mutant(
        "required-role",
        "../storage/schema/test_encrypted_row_security.py -k 'store_nothing_if'",
        "saying what to run to a role that may not record the database",
        "permission denied|InsufficientPrivilege",
        trust_each_role_to_record,
    ),
    Mutant(
        "required-distributed",
        f"{_ROWS}test_required.py -k 'distributed_database and create'",
        "leaving the record of a distributed database to migrate",
        "DID NOT RAISE",
        record_a_distributed_database,
    ),
    Mutant(
        "record-tenants",
        f"{_ROWS}test_encrypted_database.py -k 'new_tenant and sqlite and kv'",
        "the record of the database, before a write for a new tenant",
        "DID NOT RAISE",
        look_for_the_mark_of_the_tenant_only,
    ),
    Mutant(
        "record-coordinator",
        f"{_ROWS}test_encrypted_database.py -k 'new_tenant and postgresql and kv'",
        "looking at the coordinator for the record of a distributed database",
        "DID NOT RAISE",
        look_for_no_record_on_the_coordinator,
    ),
    Mutant(
        "record-tip",
        f"{_ROWS}test_encrypted_drafts.py -k 'whose_end_is_known and postgresql and mark'",
        "the condition under which an append without keys moves a tip",
        "DID NOT RAISE",
        move_tips_without_a_condition,
    ),
    Mutant(
        "record-draft",
        f"{_ROWS}test_encrypted_drafts.py -k 'open_draft and postgresql and mark and flush'",
        "the condition under which a draft without keys is written",
        "DID NOT RAISE",
        write_drafts_without_a_condition,
    ),
    Mutant(
        "record-group",
        f"{_ROWS}test_encrypted_drafts.py -k 'shared and postgresql'",
        "the condition of appends without keys that share a statement",
        "DID NOT RAISE|AssertionError|assert",
        write_groups_without_a_condition,
    ),
    Mutant(
        "record-commit",
        f"{_ROWS}test_encrypted_drafts.py -k 'shared and sqlite'",
        "the condition of appends without keys that share a commit",
        "DID NOT RAISE|AssertionError|assert",
        move_tips_without_a_condition,
    ),
    Mutant(
        "encryption-tenants",
        f"{_ROWS}test_cells.py -k 'key_of_its_own'",
        "deriving a key for each tenant",
        "assert|DID NOT RAISE",
        give_all_tenants_one_key,
    ),
    Mutant(
        "security-record",
        "../storage/schema/test_encrypted_row_security.py -k 'only_a_role'",
        "refusing to record a database as a role that does not see all rows",
        "DID NOT RAISE",
        record_what_a_role_does_not_see,
    ),
    Mutant(
        "security-owner",
        "../storage/schema/test_row_security.py -k 'member_of_the_owner'",
        "refusing the owner of the tables under row-level security",
        "DID NOT RAISE",
        open_as_the_owner,
    ),
    Mutant(
        "login-revoked",
        f"{_SERVER}test_sessions.py -k 'ends_with_its_token'",
        "looking up the token of a login at each request",
        "assert|AssertionError",
        keep_the_login_of_a_revoked_token,
    ),
    Mutant(
        "login-idle",
        f"{_SERVER}test_sessions.py -k 'not_used_and_after'",
        "the end of a login that is not used",
        "assert|AssertionError",
        end_no_login,
    ),
    Mutant(
        "local-proxy",
        f"{_SERVER}test_local_only.py -k 'by_any_of_its_headers'",
        "refusing what a proxy passes on to a server without tokens",
        "assert 204|assert",
        serve_what_a_proxy_passes_on,
    ),
    Mutant(
        "local-machine",
        f"{_SERVER}test_local_only.py -k 'another_machine'",
        "refusing other machines without tokens",
        "assert 204|assert",
        serve_other_machines,
    ),
    Mutant(
        "server-keys",
        f"{_SERVER}test_keys.py -k 'does_not_start and sqlite'",
        "starting no application without the keys of an encrypted database",
        "it started",
        start_without_keys,
    ),
    Mutant(
        "file-intruders",
        "../storage/upgrade/test_intruders.py -k 'not_opened'",
        "refusing foreign triggers and changed views",
        "DID NOT RAISE",
        allow_intruders,
    ),
    Mutant(
        "file-planted",
        "../cli/test_written_files.py -k 'was_guessed'",
        "O_EXCL and O_NOFOLLOW of a new file",
        "DID NOT RAISE|assert",
        follow_links,
    ),
    Mutant(
        "file-private",
        "../storage/drivers/test_private_file.py -k 'others_may_read'",
        "refusing a file of secrets that others may read or write",
        "DID NOT RAISE",
        read_secrets_that_others_may_write,
    ),
    Mutant(
        "body-bytes",
        f"{_SERVER}test_bodies.py -k 'its_own_limit'",
        "the limits of bytes of the page's forms",
        "assert|AssertionError",
        read_forms_of_any_size,
    ),
    Mutant(
        "body-values",
        f"{_SERVER}test_bodies.py -k 'too_many_values'",
        "the limit of values in a body",
        "the body was parsed|assert",
        read_bodies_of_any_number_of_values,
    ),
    Mutant(
        "scope-routes",
        f"{_SERVER}test_scopes.py -k 'each_route_refuses'",
        "the scope that a route needs",
        "assert|AssertionError",
        give_each_token_all_scopes,
    ),
    Mutant(
        "scope-ask",
        f"{_SERVER}test_scopes.py -k 'nothing_but_questions'",
        "what a token of scope ask may append",
        "assert|AssertionError",
        let_askers_write_what_they_like,
    ),
)
"""Mutants whose proofs are tests of the storage, the server and the commands."""
