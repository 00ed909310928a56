from __future__ import annotations

import re
import subprocess
import sys

import pytest

from chatledger.cli.suggestions import OLD_COMMANDS, OLD_OPTIONS
from tests.cli.commands import SOURCE, chatledger

COMMANDS = [
    "migrate",
    "schema",
    "import",
    "export",
    "threads",
    "archive",
    "show",
    "prompt",
    "branches list",
    "branches activate",
    "runs list",
    "runs show",
    "runs stop",
    "runs resume",
    "feedback record",
    "feedback list",
    "feedback summary",
    "feedback compare",
    "runs usage",
    "stats",
    "check",
    "delete",
    "erase",
    "erasures",
    "erase-message",
    "delete-inactive",
    "backup",
    "restore",
    "reencrypt",
    "drafts",
    "search",
    "sql",
    "demo",
]
WITHOUT_DATABASE = ["convert", "formats"]
PROBE = """
import sys
from chatledger.cli import main
codes = {main([*words.split(), "--help"]) for words in sys.argv[1:]}
heavy = {"sqlalchemy", "alembic", "asyncpg", "aiosqlite", "chatledger.models", "chatledger.ledger"} & {*sys.modules}
print(codes, heavy)
"""


def test_no_help_loads_database_code() -> None:
    call = [sys.executable, "-c", PROBE, "", "branches", "runs", "feedback", *COMMANDS, *WITHOUT_DATABASE]
    done = subprocess.run(call, capture_output=True, env={"PYTHONPATH": str(SOURCE)}, check=True)
    assert done.stdout.decode().splitlines()[-1] == "{0} set()"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_the_common_options(command: str) -> None:
    words = chatledger(*command.split(), "--help").out.split()
    assert {"--url", "--tenant", "--json", "--debug"} <= set(words)


@pytest.mark.parametrize(("words", "says"), OLD_COMMANDS.items())
def test_an_old_command_is_answered_with_the_new_one(words: str, says: str) -> None:
    outcome = chatledger(*words.split(), "t")
    assert (outcome.code, outcome.out, says in outcome.err) == (2, "", True)
    named = re.findall(r"'([\w-]+)", says)
    assert named
    assert all("No such" not in chatledger(*one.split(), "--help").err for one in named)


@pytest.mark.parametrize(
    ("command", "option", "says"),
    [(command, option, says) for command, options in OLD_OPTIONS.items() for option, says in options.items()],
)
def test_an_old_option_is_answered_with_the_new_one(command: str, option: str, says: str) -> None:
    for words in ([option, "3"], [f"{option}=3"]):
        outcome = chatledger(*command.split(), "t", *words)
        assert (outcome.code, outcome.out, f"No such option: {option}. {says}." in outcome.err) == (2, "", True)
    assert option not in chatledger(*command.split(), "--help").out


@pytest.mark.parametrize(
    "words", ["bogus", "show", "prompt", "import", "threads --limit 0", "threads --limit x", "feedback record r k x"]
)
def test_wrong_words_are_a_usage_error(words: str) -> None:
    outcome = chatledger(*words.split())
    assert (outcome.code, outcome.out) == (2, "")


def test_the_version_is_that_of_the_package() -> None:
    import chatledger as package

    assert re.fullmatch(r"\d+\.\d+\.\d+.*", package.__version__)
    outcome = chatledger("--version")
    assert (outcome.code, outcome.out) == (0, f"chatledger {package.__version__}\n")


COMPLETE = """
import os, sys
from chatledger.cli import main
os.environ |= {"_CHATLEDGER_COMPLETE": "complete_bash", "COMP_WORDS": sys.argv[1], "COMP_CWORD": sys.argv[2]}
main([])
print(sorted({"sqlalchemy", "alembic", "asyncpg", "chatledger.models", "chatledger.ledger"} & {*sys.modules}))
"""


@pytest.mark.parametrize(
    ("words", "at", "offered"),
    [
        ("chatledger mi", 1, {"migrate"}),
        ("chatledger runs ", 2, {"delete", "list", "resume", "show", "stop", "usage"}),
        ("chatledger sql --cs", 2, {"--csv"}),
    ],
)
def test_the_shell_completes_commands_and_options_without_the_database(words: str, at: int, offered: set[str]) -> None:
    call = [sys.executable, "-c", COMPLETE, words, str(at)]
    done = subprocess.run(call, capture_output=True, env={"PYTHONPATH": str(SOURCE)}, check=True, text=True)
    *found, loaded = done.stdout.splitlines()
    assert (set(found), loaded) == (offered, "[]")


def test_completion_is_offered() -> None:
    assert {"--install-completion", "--show-completion"} <= set(chatledger("--help").out.split())


def test_no_suggestion_names_a_command_that_deletes() -> None:
    """The one who types `tail` wants to look, and a removal is not taken back."""
    deleting = {"delete", "erase", "erase-message", "delete-inactive"}
    for word in ["tail", "edit", "users", "remove", *(f"{name}x" for name in deleting)]:
        outcome = chatledger(word)
        assert (outcome.code, f"No such command '{word}'" in outcome.err) == (2, True)
        assert not deleting & {*re.findall(r"'(\w+)'", outcome.err)}, outcome.err
    assert "Did you mean 'threads'?" in chatledger("thread").err
    assert "Did you mean 'summary'?" in chatledger("feedback", "summry").err
