"""Logging in with a token. The browser then keeps the secret of a session in a cookie that no script can read."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import HTTPException, Request
from starlette.responses import RedirectResponse, Response

from chatledger.errors import InvalidArgument
from chatledger.server.callers.cookies import Cookie, cookie_of, secret_of
from chatledger.server.callers.tokens import TokenFile
from chatledger.server.page.html import html_router, link, page
from chatledger.server.state import state_of

router = html_router()
_LONGEST_NEXT = 2_048
"""Maximum characters of the address to return to."""


@router.get("/login")
async def login(request: Request, next: str = "") -> Response:  # noqa: A002 - the name in the address
    _tokens(request)
    _cookie(request)
    return await page(request, "login.html", next=_bounded(next), refused=False)


@router.post("/login")
async def log_in(request: Request) -> Response:
    tokens, cookie = _tokens(request), _cookie(request)
    form = await read_form(request)
    next_path = _bounded(form.get("next", ""))
    caller = tokens.find(form.get("token", "").strip())
    if caller is None or caller.token_id is None:
        return await page(request, "login.html", status=401, next=next_path, refused=True)
    secret = await tokens.sessions.begin(caller.token_id, instead_of=secret_of(request))
    root = request.scope.get("root_path", "")
    response = RedirectResponse(next_path if _stays_here(next_path) else link(root), status_code=303)
    response.set_cookie(cookie.name, secret, path=cookie.path, secure=cookie.secure, httponly=True, samesite="strict")
    return response


@router.post("/logout")
async def log_out(request: Request) -> Response:
    response = RedirectResponse(link(request.scope.get("root_path", ""), "login"), status_code=303)
    tokens, cookie = state_of(request).tokens, cookie_of(request)
    if tokens is not None and cookie is not None:
        await tokens.sessions.end(secret_of(request))
        response.delete_cookie(cookie.name, path=cookie.path, secure=cookie.secure, httponly=True, samesite="strict")
    return response


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, the last value of each. Raises InvalidArgument for what no form of the page sends."""
    try:
        text = (await request.body()).decode("utf-8")
        fields = parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise InvalidArgument("the form", "cannot be read") from None
    return {name: values[-1] for name, values in fields.items()}


def _bounded(next_path: str) -> str:
    """The address, or none if it is too long: the login then returns to the list of threads."""
    return next_path if len(next_path) <= _LONGEST_NEXT else ""


def _stays_here(path: str) -> bool:
    """Whether the path is one of this site. A browser takes `//` and a backslash for the beginning of another one."""
    return path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()


def _tokens(request: Request) -> TokenFile:
    tokens = state_of(request).tokens
    if tokens is None:
        raise HTTPException(404, "this server has no tokens to log in with")
    return tokens


def _cookie(request: Request) -> Cookie:
    """Raises an error of HTTP where everybody on the way could read the token and the cookie."""
    cookie = cookie_of(request)
    if cookie is None:
        raise HTTPException(
            403,
            "this address is plain HTTP, so others on the way could read your token: use https, or http://localhost on "
            "the machine of the server. A proxy with TLS must send `X-Forwarded-Proto: https`, and FORWARDED_ALLOW_IPS "
            "must name it if it is another machine",
        )
    return cookie
