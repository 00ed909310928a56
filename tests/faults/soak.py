"""The long form of the proofs: rounds until the time is over, each with a seed of its own, and the figures.

python -m tests.faults.soak --minutes 10 [--seed N] [--only NAME] [--lanes N] [--page docs/contribute/reliability.md]
python -m tests.faults.soak --only NAME --again N      one round once more, with the seed that it had

Rounds run side by side in lanes: processes, each with its own PostgreSQL server and folder. The next round goes to the
proof that is furthest behind its share of the time.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import queue
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chatledger.admin import migrate
from tests.faults.checker import FAILURES, Figures
from tests.faults.growth import Growth
from tests.faults.mutant import read_mutants
from tests.faults.rounds import PROOFS, Place, Proof
from tests.postgres import own_server

LANES = 2
TIMEOUT = 1_800
"""Seconds after which a round without a report has failed. A round of 200,000 appends may take ten minutes."""


@dataclass
class Account:
    """The figures of a proof so far, and the seconds that it took."""

    figures: Figures = field(default_factory=Figures)
    rounds: int = 0
    begun: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Told:
    """A lane's report of a round: its figures, or the text of the error."""

    name: str
    seed: int
    seconds: float
    figures: Figures | None = None
    error: str = ""


# --- A lane -----------------------------------------------------------------------------------------------------------


@contextmanager
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="chatledger-soak-") as folder, own_server() as server:
        template = Path(folder) / "template.db"
        migrate(template)
        with server.database() as pg_template:
            migrate(pg_template)
            yield Place(Path(folder), server, template, pg_template)


def _lane(asked: Any, answers: Any) -> None:
    """Runs rounds, each ordered by the name of its proof and a seed, until the order is None."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # its server is stopped on the way out
    proofs = {proof.name: proof for proof in PROOFS}
    with place() as own:
        while (order := _order(asked)) is not None:
            answers.put(_told(own, proofs[order[0]], order[1]))


def _order(asked: Any) -> tuple[str, int] | None:
    """Also None if the parent process has ended."""
    parent = multiprocessing.parent_process()
    while parent is None or parent.is_alive():
        with contextlib.suppress(queue.Empty):
            order: tuple[str, int] | None = asked.get(timeout=5)
            return order
    return None


def _told(own: Place, proof: Proof, seed: int) -> Told:
    began = time.monotonic()
    try:
        figures = proof.run(own, seed)
    except Exception as error:
        return Told(proof.name, seed, time.monotonic() - began, error="".join(traceback.format_exception(error)))
    return Told(proof.name, seed, time.monotonic() - began, figures)


@contextmanager
def lanes(count: int) -> Iterator[tuple[Any, Any]]:
    """Runs the lanes. Gives the queue of their orders and the queue of their reports."""
    context = multiprocessing.get_context("spawn")
    asked, answers = context.Queue(), context.Queue()
    running = [context.Process(target=_lane, args=(asked, answers)) for _ in range(count)]
    for lane in running:
        lane.start()
    try:
        yield asked, answers
        for _ in running:
            asked.put(None)
        for lane in running:
            lane.join(60)
    finally:
        for lane in running:
            if lane.is_alive():
                lane.terminate()
                lane.join()


# --- The rounds -------------------------------------------------------------------------------------------------------


def soak(proofs: Sequence[Proof], *, minutes: float, seed: int, count: int = LANES) -> tuple[dict[str, Account], int]:
    """The account of each proof, and the number of failed rounds. Runs at least one round of each, then until the time
    is over.
    """
    accounts = {proof.name: Account() for proof in proofs}
    failed = 0
    end = time.monotonic() + 60 * minutes
    with lanes(count) as (asked, answers):
        under_way: set[str] = set()
        for _ in range(count):
            _ask(asked, _next(proofs, accounts, under_way, end), accounts, under_way, seed)
        while under_way:
            try:
                told: Told = answers.get(timeout=TIMEOUT)
            except queue.Empty:
                print(f"FAILED {', '.join(under_way)}: not a word for {TIMEOUT} s", flush=True)
                return accounts, failed + len(under_way)
            under_way.remove(told.name)
            failed += not _enter(accounts[told.name], told)
            _ask(asked, _next(proofs, accounts, under_way, end), accounts, under_way, seed)
    return accounts, failed


def _next(proofs: Sequence[Proof], accounts: dict[str, Account], under_way: set[str], end: float) -> Proof | None:
    """The proof that is furthest behind its share and not running. A proof without a round comes first."""
    free = [proof for proof in proofs if proof.name not in under_way]
    if time.monotonic() > end:
        free = [proof for proof in free if not accounts[proof.name].begun]
    return min(free, key=lambda proof: _had(proof, accounts[proof.name]), default=None)


def _had(proof: Proof, account: Account) -> tuple[bool, float]:
    return account.begun > 0, account.seconds / proof.share


def _ask(asked: Any, proof: Proof | None, accounts: dict[str, Account], under_way: set[str], seed: int) -> None:
    if proof is None:
        return
    account = accounts[proof.name]
    own = random.Random(f"{seed} {account.begun} {proof.name}").randrange(2**32)
    account.begun += 1
    under_way.add(proof.name)
    asked.put((proof.name, own))


def _enter(account: Account, told: Told) -> bool:
    account.rounds += 1
    account.seconds += told.seconds
    if told.figures is None:
        _keep(told)
        return False
    account.figures.add(told.figures)
    counts = f"{told.figures.acknowledged:,} acknowledged, {told.figures.faults:,} faults"
    print(f"{told.name}: seed {told.seed}, {counts}, {told.seconds:.0f} s", flush=True)
    return True


def _keep(told: Told) -> None:
    """Saves the error beside the histories that the checker saves."""
    FAILURES.mkdir(parents=True, exist_ok=True)
    path = FAILURES / f"{told.seed}.txt"
    path.write_text(f"{told.name}, seed {told.seed}\n{told.error}")
    last = told.error.strip().splitlines()[-1]
    print(f"FAILED {told.name}: seed {told.seed}, in {path}: {last[:500]}", flush=True)


# --- The page ---------------------------------------------------------------------------------------------------------

_COLUMNS = (
    "rounds",
    "appends acknowledged",
    "faults injected",
    "unknown outcomes resolved",
    "lost",
    "doubled",
    "out of order",
    "other errors",
)
_HEAD = f"| proof | {' | '.join(_COLUMNS)} |\n|---|{'---:|' * len(_COLUMNS)}\n"


def figures_table(accounts: dict[str, Account]) -> str:
    rows = [_row(name, account) for name, account in accounts.items()]
    total = Account(rounds=sum(account.rounds for account in accounts.values()))
    for account in accounts.values():
        total.figures.add(account.figures)
    return _HEAD + "\n".join([*rows, _row("**all**", total)])


def _row(name: str, account: Account) -> str:
    one = account.figures
    found = (one.lost, one.doubled, one.disordered, one.other)
    counts = (account.rounds, one.acknowledged, one.faults, one.unknown, *found)
    return f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |"


_GROWTH_COLUMNS = (
    "rounds",
    "appends",
    "threads",
    "MiB of memory",
    "blocks of Python",
    "file descriptors",
    "connections",
)
_GROWTH_HEAD = f"| proof | {' | '.join(_GROWTH_COLUMNS)} |\n|---|{'---:|' * len(_GROWTH_COLUMNS)}\n"


def growth_table(accounts: dict[str, Account]) -> str:
    """The appends and the threads of a round, and the largest growth of any round."""
    rows = [_growth_row(name, account.figures.growths) for name, account in accounts.items() if account.figures.growths]
    return _GROWTH_HEAD + "\n".join(rows)


def _growth_row(name: str, growths: Sequence[Growth]) -> str:
    counts = [f"{count:,}" for count in (len(growths), growths[0].appends, growths[0].threads)]
    largest = [max(getattr(one, column) for one in growths) for column in ("memory", "blocks", "files", "connections")]
    return f"| {name} | {' | '.join([*counts, *(f'{slope:,.1f}' for slope in largest)])} |"


def mutants_table() -> str:
    mutants = [(mutant.test.split()[0].partition("::")[0], mutant) for mutant in read_mutants()]
    rows = [f"| `{file}` | `{mutant.name}` | {mutant.without} |" for file, mutant in mutants]
    return "| proof | mutant | fails without |\n|---|---|---|\n" + "\n".join(rows)


def put(page: str, name: str, text: str) -> str:
    """The page with the text between its two marks of that name. A blank line ends a table in Markdown."""
    head, begin, rest = page.partition(f"<!-- {name} -->\n")
    _, end, tail = rest.partition(f"<!-- end of {name} -->")
    assert begin, name
    assert end, name
    return f"{head}{begin}{text.rstrip()}\n\n{end}{tail}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only")
    parser.add_argument("--again", type=int, default=None)
    parser.add_argument("--lanes", type=int, default=LANES)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    proofs = [proof for proof in PROOFS if given.only is None or given.only in proof.name]
    if given.again is not None:
        with place() as own:
            told = _told(own, proofs[0], given.again)
        return not _enter(Account(), told)
    seed = random.randrange(2**32) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    accounts, failed = soak(proofs, minutes=given.minutes, seed=seed, count=given.lanes)
    table, grown = figures_table(accounts), growth_table(accounts)
    print(f"{table}\n\n{grown}")
    if given.page is not None and not failed and given.only is None:
        page = put(given.page.read_text(), "figures", f"{given.minutes:g} minutes, seed {seed}.\n\n{table}")
        page = put(page, "growth", grown)
        given.page.write_text(put(page, "mutants", mutants_table()))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
