"""The page for people over HTTP, on both databases: its headers, what it costs, who sees what, and forms."""

from __future__ import annotations

import base64
import inspect
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from chatledger import ChatMessage, Feedback, Ledger, Newest, NewThread
from chatledger.models import AudioPart, FilePart, ImagePart
from chatledger.repositories import scope_of
from chatledger.server import Caller, TokenFile, create_app
from chatledger.server import page as page_package
from chatledger.server.answers import pages
from chatledger.server.page import conversation
from chatledger.server.query import parameters_of
from chatledger.server.routes import events
from chatledger.storage.repositories.branches import fork_at
from tests.server.conftest import by_header, client_of

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


async def text_of(client: httpx.AsyncClient, path: str, status: int = 200) -> str:
    answer = await client.get(path)
    assert answer.status_code == status, answer.text
    return answer.text


def seqs(html: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'data-seq="(\d+)"', html)]


@pytest.mark.parametrize("path", ["/", "/?q=x", "/usage", "/threads/t", "/threads/t/messages", "/threads/nobody's"])
async def test_each_page_forbids_what_it_does_not_need(client: httpx.AsyncClient, ledger: Ledger, path: str) -> None:
    await ledger.messages.append("t", [ChatMessage(role="user", content="<b>hello</b>")], create=True)
    answer = await client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    assert "<b>hello" not in answer.text
    assert re.findall(r"<script(?! src=)|<style|\sstyle=|\son\w+=", answer.text) == []


async def test_a_page_of_a_long_thread_reads_and_shows_fifty_messages(app: FastAPI, ledger: Ledger) -> None:
    for at in range(0, 3_000, 1_000):
        messages = [ChatMessage(role="user", content=str(at + number)) for number in range(1, 1_001)]
        await ledger.messages.append("t", messages, create=True)
    async with client_of(app) as client:
        newest = await text_of(client, "/threads/t")
        assert seqs(newest) == list(range(2_951, 3_001))
        earlier = await text_of(client, fragment(newest, "earlier"))
        assert seqs(earlier) == list(range(2_901, 2_951))
        assert seqs(await text_of(client, fragment(earlier, "later"))) == list(range(2_951, 3_001))
        assert seqs(await text_of(client, "/threads/t/messages?start=2991")) == list(range(2_991, 3_001))
        assert seqs(await text_of(client, "/threads/t/messages?start=0")) == list(range(1, 51))
        around = await text_of(client, "/threads/t?at=1500")
        assert seqs(around) == list(range(1_475, 1_525))
        assert seqs(await text_of(client, fragment(around, "later"))) == list(range(1_525, 1_575))
        for name in ("at", "branch"):
            assert (await client.get(f"/threads/t?{name}={10**20}")).status_code == 400


SCRIPT = (Path(page_package.__file__).parent / "static" / "page.js").read_text(encoding="utf-8")


def test_the_script_asks_with_parameters_that_its_routes_have() -> None:
    """It is read here, since only a browser runs it."""
    [of_events] = re.findall(r"new EventSource\(.*URLSearchParams\(\{ (\w+):", SCRIPT)
    [of_fragment] = re.findall(r"fragmentAddress\(\{ (\w+):", SCRIPT)
    [route] = [one for one in events.router.routes if isinstance(one, APIRoute) and one.name == "follow_thread"]
    assert of_events in parameters_of(route.dependant, "query")
    assert of_fragment == "start"
    assert {"start", "branch"} <= {*inspect.signature(conversation.show_messages).parameters}


def fragment(html: str, which: str) -> str:
    """Where the script fetches the neighbouring messages from."""
    found = re.search(rf'class="{which}".* data-fragment="([^"]+)"', html)
    assert found is not None
    return unescape(found[1])


@contextmanager
def calls_of(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The calls of the ledger's nouns, and what the page asks of the storage: each is a statement or a few."""
    seen: list[str] = []

    def counts(owner: Any, name: str, said: str) -> None:
        call = getattr(owner, name)

        def counted(*given: Any, **more: Any) -> Any:
            seen.append(said)
            return call(*given, **more)

        monkeypatch.setattr(owner, name, counted)

    for noun in ("threads", "messages", "branches", "runs", "feedback"):
        kind = type(getattr(ledger, noun))
        for name, call in list(vars(kind).items()):
            if not name.startswith("_") and callable(call):
                counts(kind, name, f"{noun}.{name}")
    counts(type(scope_of(ledger)), "history", "history")
    counts(pages, "stored_sizes", "stored_sizes")
    counts(conversation, "find_runs", "find_runs")
    yield seen


async def test_the_cost_of_a_page_does_not_grow_with_runs_and_scores(
    client: httpx.AsyncClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ledger.threads.create("t")
    for number in range(40):
        answer = ChatMessage(role="assistant", content="x", message_id=f"m{number}")
        await ledger.messages.append("t", [ChatMessage(role="user", content="?"), answer], run_id=f"r{number}")
        await ledger.feedback.record(Feedback(run_id=f"r{number}", key="k", score=1, message_id=f"m{number}"))
    with calls_of(ledger, monkeypatch) as seen:
        html = await text_of(client, "/threads/t")
    assert html.count('class="scores"') == 25
    assert seen == [
        "threads.get",
        "threads.find",
        "stored_sizes",
        "history",
        "branches.list",
        "find_runs",
        "feedback.list",
    ]


async def test_nothing_of_another_user_is_shown_or_changed(app: FastAPI, ledger: Ledger) -> None:
    ada = ledger.user("ada")
    await ada.threads.create("hers", title="secret title")
    part = ImagePart(data=PIXEL, mime_type="image/png")
    message = ChatMessage(role="assistant", content=[part], message_id="m")
    await ada.messages.append("hers", [message], run_id="r")
    await fork_at(scope_of(ada), "hers", 0, activate=False)
    async with client_of(app, "bob") as bob, client_of(app, "ada") as own:
        for path in ("", "/messages", "/messages/m/json", "/media/m/0"):
            assert "secret" not in await text_of(bob, f"/threads/hers{path}", 404)
            await text_of(own, f"/threads/hers{path}")
        for path in ("/", "/?q=secret", "/usage"):
            assert "secret title" not in await text_of(bob, path)
        for path, form in (("score", {"run_id": "r", "key": "k", "score": "1"}), ("activate", {"branch": "1"})):
            assert (await bob.post(f"/threads/hers/{path}", data=form)).status_code == 404
            assert (await own.post(f"/threads/hers/{path}", data=form)).status_code == 303
    [score] = await ledger.feedback.list()
    assert (score.user_id, score.source) == ("ada", "page")


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"run_id": "r", "key": "k", "score": "nan"}, 400),
        ({"run_id": "r", "key": "k", "score": "many"}, 400),
        ({"run_id": "r", "key": "", "score": "1"}, 400),
        ({"run_id": "", "key": "k", "score": "1"}, 404),
        ({"run_id": "other", "key": "k", "score": "1"}, 404),
        ({"run_id": "r", "key": "k", "score": "1", "message_id": "nobody"}, 404),
    ],
)
async def test_a_wrong_score_is_refused(
    client: httpx.AsyncClient, ledger: Ledger, form: dict[str, str], status: int
) -> None:
    for thread, run in (("t", "r"), ("u", "other")):
        await ledger.messages.append(thread, [ChatMessage(role="user", content="?")], create=True, run_id=run)
    answer = await client.post("/threads/t/score", data=form)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert (await ledger.feedback.list(events=True)).items == []


async def test_only_known_types_are_shown_in_the_browser(client: httpx.AsyncClient, ledger: Ledger) -> None:
    parts = [
        ImagePart(data=PIXEL, mime_type="image/png"),
        ImagePart(data=PIXEL),
        ImagePart(url=f"data:image/png;base64,{PIXEL}"),
        ImagePart(data=PIXEL, mime_type="image/svg+xml"),
        FilePart(data=PIXEL, mime_type="text/html"),
        ImagePart(url="data:text/html,<script>1</script>"),
        ImagePart(data="%%%", mime_type="image/png"),
        ImagePart(url="https://elsewhere.example/x.png"),
    ]
    await ledger.messages.append("t", [ChatMessage(role="user", content=parts, message_id="m/1")], create=True)
    answers = [await client.get(f"/threads/t/media/m%2F1/{at}") for at in range(-1, 9)]
    types = [answer.headers["content-type"] for answer in answers if answer.status_code == 200]
    assert types == ["image/png"] * 3 + ["application/octet-stream"] * 3
    assert [answer.status_code for answer in answers] == [404, *[200] * 6, 404, 404, 404]
    for answer in answers[4:7]:
        assert answer.headers["content-disposition"] == "attachment"
    assert "elsewhere.example/x.png" in await text_of(client, "/threads/t")
    assert 'src="https' not in await text_of(client, "/threads/t")


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
        (b"RIFF\x24\n\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x24\0\0\0AVI LIST", "application/octet-stream"),
    ],
)
async def test_a_riff_file_is_what_its_ninth_to_twelfth_byte_say(
    client: httpx.AsyncClient, ledger: Ledger, start: bytes, kind: str
) -> None:
    part = AudioPart(data=base64.b64encode(start).decode())
    await ledger.messages.append("t", [ChatMessage(role="user", content=[part], message_id="m")], create=True)
    assert (await client.get("/threads/t/media/m/0")).headers["content-type"] == kind


async def test_every_error_of_a_page_is_a_page(client: httpx.AsyncClient, ledger: Ledger) -> None:
    await ledger.threads.create("t")
    for method, path, status in (
        ("GET", "/login", 404),
        ("GET", "/logout", 405),
        ("GET", "/threads/t/score", 405),
        ("GET", "/usage?days=0", 400),
        ("GET", "/threads/nobody's", 404),
        ("POST", "/threads/t/activate", 400),
    ):
        answer = await client.request(method, path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8"), path
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "this server has no tokens to log in with" in await text_of(client, "/login", 404)
    assert (await client.get("/logout")).headers["allow"] == "POST"


async def test_a_body_without_an_end_gets_a_page(client: httpx.AsyncClient) -> None:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(30):
            yield b"a" * 10_000

    answer = await client.post("/threads/t/score", content=body())
    assert (answer.status_code, answer.headers["content-type"]) == (413, "text/html; charset=utf-8")


async def test_a_browser_keeps_only_the_files_of_their_own_version(client: httpx.AsyncClient) -> None:
    [own] = re.findall(r'src="(/static/page.js[^"]*)"', await text_of(client, "/"))
    assert "immutable" in (await client.get(own)).headers["cache-control"]
    for path in ("/static/page.js?v=other", "/static/page.js"):
        assert (await client.get(path)).headers["cache-control"] == "no-store"


async def test_its_addresses_stay_within_a_mounted_application(ledger: Ledger) -> None:
    outer = FastAPI()
    outer.mount("/chats", create_app(ledger, authenticate=by_header))
    await ledger.messages.append("a/b?", [ChatMessage(role="user", content="?")], create=True)
    async with client_of(outer) as client:
        for path in ("/chats/", "/chats/threads/a%2Fb%3F", "/chats/usage"):
            html = await text_of(client, path)
            links = re.findall(r'(?:href|src|action|data-events|data-fragment)="(/[^"]*)"', html)
            assert links
            assert [one for one in links if not one.startswith("/chats/")] == []
        assert (await client.get("/chats/static/page.css")).headers["content-type"].startswith("text/css")


@pytest.mark.parametrize(
    ("next_path", "leads_to"),
    [
        ("/threads/a%2Fb?branch=1", "/threads/a%2Fb?branch=1"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
async def test_a_login_stays_on_this_site(ledger: Ledger, tmp_path: Path, next_path: str, leads_to: str) -> None:
    tokens = TokenFile.create(tmp_path / "tokens.json")
    token = tokens.add(Caller("ada"))
    app = create_app(ledger, authenticate=tokens)
    async with client_of(app, None, at="http://localhost") as client:
        asked = await client.get("/threads/x%2Fy?branch=1", headers={"Accept": "text/html"})
        assert asked.headers["location"] == "/login?next=%2Fthreads%2Fx%252Fy%3Fbranch%3D1"
        wrong = await client.post("/login", data={"token": "cl_x", "next": next_path})
        assert (wrong.status_code, wrong.headers.get("set-cookie")) == (401, None)
        answer = await client.post("/login", data={"token": token, "next": next_path})
        assert (answer.status_code, answer.headers["location"]) == (303, leads_to)
        said = answer.headers["set-cookie"].lower()
        assert all(word in said for word in ("httponly", "samesite=strict", "path=/"))
        assert (await client.get("/")).status_code == 200
        await client.post("/logout")
        assert (await client.get("/")).status_code == 401


async def test_it_is_left_out_when_the_application_wants_none(ledger: Ledger) -> None:
    async with client_of(create_app(ledger, authenticate=by_header, page=False)) as client:
        for path in ("/", "/usage", "/login", "/static/page.js"):
            await text_of(client, path, 404)


async def test_text_that_is_no_unicode_is_shown(client: httpx.AsyncClient, ledger: Ledger) -> None:
    odd = "half \ud800 \x00 \x1b"
    message = ChatMessage(role="assistant", content=odd, message_id=odd)
    await ledger.messages.append(odd, [message], create=NewThread(title=odd))
    assert "half \ufffd" in await text_of(client, "/")


async def test_a_thread_without_a_title_has_one_name_in_lists_and_its_question_above_it(
    client: httpx.AsyncClient, ledger: Ledger
) -> None:
    turn = [ChatMessage.user(" Two days\nin Turin?"), ChatMessage.assistant("See the museum.")]
    await ledger.messages.append("trip", turn, create=True)
    for path in ("/", "/?q=museum"):
        assert '<bdi class="name">trip</bdi>' in await text_of(client, path)
    assert "See the museum." in await text_of(client, "/")
    html = await text_of(client, "/threads/trip")
    assert '<h1 dir="auto">Two days in Turin?</h1>' in html
    assert "<title>Two days in Turin? ·" in html
    before = (await ledger.messages.history("trip", Newest(1))).previous_cursor
    assert before is not None
    assert '<h1 dir="auto">trip</h1>' in await text_of(client, f"/threads/trip?after={before}")
    await ledger.threads.update("trip", title="Turin")
    assert '<h1 dir="auto">Turin</h1>' in await text_of(client, "/threads/trip")
