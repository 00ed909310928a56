"""A context file goes through the ledger and comes back byte by byte, on both databases."""

from __future__ import annotations

import io

from chatledger import Ledger
from chatledger.formats.kosong import context_file
from tests.formats.kosong.test_context_file import FILE

TORN = FILE + b'{"role": "assistant", "content": "so f'


async def test_a_stored_context_file_is_written_again_byte_by_byte(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", context_file.read(io.BytesIO(FILE)).messages)
    assert context_file.write((await ledger.messages.history("t")).messages) == FILE


async def test_a_torn_last_line_is_reported_and_costs_nothing_else(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    file = context_file.read(io.BytesIO(TORN))
    assert file.problem is not None
    assert (file.problem.record, file.problem.byte) == (6, len(FILE))  # counted from one, as an editor does
    await ledger.messages.append("t", file.messages)
    assert context_file.write((await ledger.messages.history("t")).messages) == FILE
