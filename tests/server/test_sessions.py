"""The logins of the page: what the browser keeps, what the file keeps, and when a login ends."""

from __future__ import annotations

import asyncio
import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request

from chatledger import Ledger
from chatledger.server import Caller, TokenFile, create_app
from chatledger.server.callers import sessions
from tests.server.conftest import client_of, serving

HOME = "http://localhost"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


@pytest.fixture
def tokens(path: Path) -> TokenFile:
    return TokenFile.create(path)


@pytest.fixture
def app(ledger: Ledger, tokens: TokenFile) -> FastAPI:
    return create_app(ledger, authenticate=tokens)


async def log_in(client: httpx.AsyncClient, token: str, path: str = "/login") -> httpx.Response:
    answer = await client.post(path, data={"token": token})
    assert answer.status_code == 303, answer.text
    return answer


def stored(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.with_name("tokens.json.sessions").read_text())["sessions"]
    return found


def make_older(path: Path, **seconds: float) -> None:
    """Let the stored times of all sessions be so many seconds earlier."""
    older = [{**one, **{name: one[name] - by for name, by in seconds.items()}} for one in stored(path)]
    file = path.with_name("tokens.json.sessions")
    file.write_text(json.dumps({"sessions": older}))


def write(path: Path, entry: dict[str, Any]) -> None:
    path.write_text(json.dumps({"tokens": [entry]}))


async def status_of(client: httpx.AsyncClient) -> int:
    return (await client.get("/v1/me")).status_code


async def test_neither_the_browser_nor_the_file_has_the_token(app: FastAPI, tokens: TokenFile, path: Path) -> None:
    token = tokens.add(Caller("ada"))
    async with client_of(app, None, at=HOME) as ada:
        said = (await log_in(ada, token)).headers["set-cookie"]
        [cookie] = ada.cookies.jar
        assert cookie.value is not None
        assert len(cookie.value) >= 43
        file = path.with_name("tokens.json.sessions")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        for secret in (token, token.removeprefix("cl_")):
            assert secret not in said
            assert secret not in file.read_text()
        assert cookie.value not in file.read_text()
        assert [one["token_id"] for one in stored(path)] == [tokens.entries()[0].id]
        assert await status_of(ada) == 200
        ada.cookies.clear()
        ada.cookies.set(cookie.name, token, "localhost.local")
        for name in (cookie.name, "chatledger_token"):
            assert (await ada.get("/v1/me", headers={"Cookie": f"{name}={token}"})).status_code == 401


@pytest.mark.parametrize(
    ("at", "mount", "start"),
    [
        ("http://localhost:8484", "", "chatledger="),
        ("http://127.0.0.1:8484", "/chat", "chatledger-chat="),
        ("http://[::1]:8484", "", "chatledger="),
        ("https://chat.example", "", "__Host-chatledger="),
        ("https://chat.example", "/a/b", "__Host-chatledger-a%2Fb="),
        ("https://localhost", "", "__Host-chatledger="),
    ],
)
async def test_the_cookie_is_of_this_host_and_mount(
    app: FastAPI, tokens: TokenFile, at: str, mount: str, start: str
) -> None:
    outer = FastAPI()
    outer.mount(mount, app)
    async with client_of(outer, None, at=at) as ada:
        token = tokens.add(Caller("ada"))
        said = (await log_in(ada, token, f"{mount}/login")).headers["set-cookie"]
        assert said.startswith(start)
        parts = set(said.lower().split("; ")[1:])
        assert {"httponly", "samesite=strict"} <= parts
        assert not any(part.startswith("domain") for part in parts)
        secure = at.startswith("https")
        assert ("secure" in parts) == secure
        assert ("path=/" if secure or not mount else f"path={mount}") in parts
        pair = said.partition(";")[0]
        assert (await ada.get(f"{mount}/v1/me", headers={"Cookie": pair})).status_code == 200
        gone = await ada.post(f"{mount}/logout", headers={"Cookie": pair})
        assert gone.headers["set-cookie"].startswith(start[:-1] + '=""')
        assert (await ada.get(f"{mount}/v1/me", headers={"Cookie": pair})).status_code == 401


@pytest.mark.parametrize("host", ["chat.example", "192.168.0.2", "localhost.evil.example", "testserver"])
async def test_a_login_over_plain_http_is_refused_with_the_reason(
    app: FastAPI, tokens: TokenFile, path: Path, host: str
) -> None:
    token = tokens.add(Caller("ada"))
    async with client_of(app, None, at=f"http://{host}") as ada:
        for answer in (await ada.get("/login"), await ada.post("/login", data={"token": token})):
            assert answer.status_code == 403
            assert "plain HTTP" in answer.text
            assert "X-Forwarded-Proto" in answer.text
            assert "set-cookie" not in answer.headers
        assert not path.with_name("tokens.json.sessions").exists()
    async with client_of(app, None, at=HOME) as ada:
        await log_in(ada, token)
        [cookie] = ada.cookies.jar
        sent = {"Cookie": f"{cookie.name}={cookie.value}", "Host": host}
        assert (await ada.get("/v1/me", headers=sent)).status_code == 401


async def test_a_login_ends_with_its_token_and_has_its_scope(app: FastAPI, tokens: TokenFile, path: Path) -> None:
    token = tokens.add(Caller("ada"))
    [entry] = tokens.entries()
    async with client_of(app, None, at=HOME) as ada:
        await log_in(ada, token)
        raw = entry.to_json()
        write(path, {**raw, "scope": "read"})
        found = await tokens.sessions.find(ada.cookies["chatledger"])
        assert found == entry.id
        assert tokens.find_entry(found) == Caller("ada", scope="read")
        for changed, status in (
            ({"scope": "write"}, 201),
            ({"user_id": "bob"}, 201),
            ({"expires_at": (datetime.now(UTC) - timedelta(1)).isoformat()}, 401),
            ({}, 201),
        ):
            write(path, {**raw, **changed})
            assert (await ada.post("/v1/threads", json={})).status_code == status, changed
        tokens.revoke(entry.id)
        assert await status_of(ada) == 401


@pytest.mark.parametrize(
    ("idle", "age", "status"),
    [
        (sessions.IDLE - 60, 0, 200),
        (sessions.IDLE, 0, 401),
        (0, sessions.LONGEST - 60, 200),
        (0, sessions.LONGEST, 401),
    ],
)
async def test_a_login_ends_when_it_is_not_used_and_after_a_week(
    app: FastAPI, tokens: TokenFile, path: Path, idle: float, age: float, status: int
) -> None:
    assert (sessions.IDLE, sessions.LONGEST) == (12 * 3600, 7 * 24 * 3600)
    async with client_of(app, None, at=HOME) as ada:
        await log_in(ada, tokens.add(Caller("ada")))
        make_older(path, used_at=idle, created_at=age)
        assert await status_of(ada) == status


async def test_use_keeps_a_login_and_writes_seldom(app: FastAPI, tokens: TokenFile, path: Path) -> None:
    file = path.with_name("tokens.json.sessions")
    async with client_of(app, None, at=HOME) as ada:
        await log_in(ada, tokens.add(Caller("ada")))
        make_older(path, used_at=sessions.IDLE - 60)
        before = stored(path)[0]["used_at"]
        assert await status_of(ada) == 200
        assert stored(path)[0]["used_at"] >= before + sessions.IDLE - 60
        state = file.stat()
        for _ in range(5):
            assert await status_of(ada) == 200
        assert file.stat().st_ino == state.st_ino


async def test_a_logout_ends_the_login_and_no_other_one(app: FastAPI, tokens: TokenFile, path: Path) -> None:
    token = tokens.add(Caller("ada"))
    async with client_of(app, None, at=HOME) as one, client_of(app, None, at=HOME) as other:
        await log_in(one, token)
        await log_in(other, token)
        kept = dict(one.cookies)
        await one.post("/logout")
        assert dict(one.cookies) == {}
        one.cookies.update(kept)  # somebody who kept the cookie
        assert [await status_of(one), await status_of(other)] == [401, 200]
        former = other.cookies["chatledger"]
        await log_in(other, token)  # in place of the former
        assert await tokens.sessions.find(former) is None
    assert len(stored(path)) == 1


async def test_there_are_only_so_many_logins_with_a_token(
    tokens: TokenFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST", 3)
    made = [await tokens.sessions.begin("a", instead_of=None) for _ in range(5)]
    other = await tokens.sessions.begin("b", instead_of=None)
    assert [await tokens.sessions.find(one) for one in (*made, other)] == [None, None, "a", "a", "a", "b"]


async def test_logins_at_the_same_time_in_several_files_are_all_kept(tokens: TokenFile, path: Path) -> None:
    files = [TokenFile(path) for _ in range(4)]
    made = await asyncio.gather(
        *[file.sessions.begin(str(number), instead_of=None) for number in range(10) for file in files]
    )
    assert len(stored(path)) == len(made) == 40
    assert [await tokens.sessions.find(one) for one in made] == [str(number) for number in range(10) for _ in files]


async def test_a_file_that_cannot_be_read_or_written_lets_nobody_in(
    app: FastAPI, tokens: TokenFile, path: Path, tmp_path: Path
) -> None:
    token = tokens.add(Caller("ada"))
    file = path.with_name("tokens.json.sessions")
    async with client_of(app, None, at=HOME) as ada:
        await log_in(ada, token)
        for text, mode in (("{", 0o600), (file.read_text(), 0o644)):
            file.write_text(text)
            file.chmod(mode)
            assert await status_of(ada) == 503
        file.unlink()
        file.mkdir()
        refused = await ada.post("/login", data={"token": token})
        assert refused.status_code == 503
        assert str(tmp_path) not in refused.text
        file.rmdir()
        await log_in(ada, token)
        assert await status_of(ada) == 200


async def test_each_process_knows_a_login_and_its_end(tokens: TokenFile, path: Path, tmp_path: Path) -> None:
    url, token = str(tmp_path / "chat.db"), tokens.add(Caller("ada"))
    options = ["--tokens", str(path)]
    with serving(url, "--migrate", *options) as first, serving(url, *options) as second:
        async with httpx.AsyncClient(timeout=60) as ada:
            assert (await ada.post(f"{first.url}/login", data={"token": token})).status_code == 303
            assert [(await ada.get(f"{one.url}/v1/me")).status_code for one in (first, second)] == [200, 200]
            kept = dict(ada.cookies)
            await ada.post(f"{second.url}/logout")
            sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in kept.items())}
            assert [(await ada.get(f"{one.url}/v1/me", headers=sent)).status_code for one in (first, second)] == [
                401,
                401,
            ]


async def test_quoted_cookies_of_others_are_not_read(
    app: FastAPI, tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's parser takes seconds for such a cookie, and whoever sends it needs no token."""
    unquoted: list[str] = []

    def unquote(value: str) -> str:
        unquoted.append(value)
        return value

    monkeypatch.setattr("http.cookies._unquote", unquote)
    hostile = 'x="' + "\\1" * 100 + '"'
    async with client_of(app, None, at=HOME) as ada:
        await log_in(ada, tokens.add(Caller("ada")))
        [cookie] = ada.cookies.jar
        ada.cookies.clear()
        own = f"{cookie.name}={cookie.value}"
        for path in ("/healthz", "/login", "/static/page.css", "/v1/me", "/v1/threads", "/", "/v1/threads/t/events"):
            await ada.get(path, headers={"Cookie": f"{hostile}; {own}"})
            await ada.get(path, headers={"Cookie": hostile})
        for header in (f"{hostile}; {own}", f"{own};{hostile}", f"{hostile};  {own} ; y={own}", f"a; =b; {own}"):
            assert (await ada.get("/v1/me", headers={"Cookie": header})).status_code == 200
        lines = [("Cookie", own), ("Cookie", hostile)]
        assert (await ada.get("/v1/me", headers=lines)).status_code == 200
        assert (await ada.get("/v1/me", headers={"Cookie": hostile})).status_code == 401
        assert (await ada.post("/login", data={"token": "no"}, headers={"Cookie": hostile})).status_code == 401
        await ada.post("/logout", headers={"Cookie": f"{hostile}; {own}"})
        assert (await ada.get("/v1/me", headers={"Cookie": own})).status_code == 401
    assert unquoted == []


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("session=3f9a", "3f9a"),
        ("a=b;session = 3f9a ;c", "3f9a"),
        ("session=a=b", "a=b"),
        ("session=1; session=2", "2"),
        (r'session="a\"b\\\054\x"', r'a"b\,x'),
        ('session="', '"'),
        ("other=1; session", None),
    ],
)
async def test_an_application_reads_its_own_cookie(ledger: Ledger, line: str, value: str | None) -> None:
    seen: list[str | None] = []

    async def authenticate(request: Request) -> Caller | None:
        seen.append(request.cookies.get("session"))
        return None

    async with client_of(create_app(ledger, authenticate=authenticate), None) as client:
        assert (await client.get("/v1/me", headers={"Cookie": line})).status_code == 401
    assert seen == [value]
