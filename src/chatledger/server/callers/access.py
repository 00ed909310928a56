"""Who may call the server: the caller of a request, and the gate that each request passes before its body is read.

The gate refuses a host that the server does not have (DNS rebinding), a write that another site's page sends (CSRF),
and a request without a caller. What the caller may see is then decided by the ledger: each call of a route goes through
the view of the caller's tenant and user.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from chatledger.arguments import BOOL, STR, STR_OR_NONE, Kind, require
from chatledger.errors import ChatLedgerError, InvalidArgument
from chatledger.ledger import Ledger
from chatledger.server.callers.request_cookies import PlainRequest
from chatledger.server.paths import path_within
from chatledger.server.problems import OutOfScope, problem, problem_of
from chatledger.storage.databases.scope import DEFAULT_TENANT

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine to itself, as a Host header has them."""

_PUBLIC = ("/login", "/healthz", "/static/")
_LONGEST_NEXT = 2_048
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that change nothing."""


TokenScope: TypeAlias = Literal["read", "ask", "write", "operator"]
"""What a caller may do. Each of `read`, `ask` and `write` may do what the one before it may. An operator reads the
metrics of the server, and no conversation.
"""
_GROWING: tuple[TokenScope, ...] = ("read", "ask", "write")
_SCOPE = Kind("read, ask, write or operator", words=get_args(TokenScope))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request, and what they may do: a user of a tenant, the tenant's administrator, or an operator."""

    user_id: str | None = None
    """The user, who sees only their own threads; None for the administrator and for an operator."""
    admin: bool = False
    """Whether it is the administrator, who sees all threads of the tenant. It must be said, so that a missing user is
    an error, and does not become the administrator.
    """
    tenant: str = DEFAULT_TENANT
    """The tenant whose rows the request reads and writes."""
    scope: TokenScope = "write"
    """What the caller may do: `read`; `ask`, which also adds questions and scores to the user's own threads; `write`,
    all that the API has; or `operator`.
    """
    token_id: str | None = field(default=None, compare=False)
    """The id of the token's entry, for a caller of a TokenFile. Two tokens of a user are the same caller."""

    def __post_init__(self) -> None:
        require(STR_OR_NONE, user_id=self.user_id, token_id=self.token_id)
        require(BOOL, admin=self.admin)
        require(STR, tenant=self.tenant)
        require(_SCOPE, scope=self.scope)
        if (self.user_id is not None) + self.admin + (self.scope == "operator") != 1:
            raise InvalidArgument("user_id", "or admin=True or scope='operator' must be given, and only one of them")
        if self.admin and self.scope == "ask":
            raise InvalidArgument("scope", "ask is for a user, because an administrator has no threads of their own")

    def may(self, needed: TokenScope) -> bool:
        """Whether the scope allows what needs this one."""
        if "operator" in (self.scope, needed):
            return self.scope == needed
        return _GROWING.index(self.scope) >= _GROWING.index(needed)

    def require(self, needed: TokenScope) -> None:
        """Raises OutOfScope unless the caller may do this."""
        if not self.may(needed):
            raise OutOfScope(self.scope, needed)

    def of_token(self, token_id: str) -> Caller:
        """The same caller, by a token of that id."""
        return replace(self, token_id=token_id)

    def view(self, ledger: Ledger) -> Ledger:
        """The ledger as the caller sees it. It costs no round trip. Raises OutOfScope for an operator."""
        self.require("read")
        of_tenant = ledger.tenant(self.tenant)
        return of_tenant if self.user_id is None else of_tenant.user(self.user_id)


Authenticate: TypeAlias = Callable[[Request], Awaitable[Caller | None]]
"""An application's own function: returns who sends a request, or None to refuse it with 401."""


class AccessGate:
    """The middleware in front of all routes. `hosts` are the accepted Host headers without their ports; None accepts
    all. `origins` are the other sites whose pages may call the server.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        authenticate: Authenticate,
        hosts: Sequence[str] | None,
        origins: Sequence[str],
        login: bool,
    ) -> None:
        self._app = app
        self._authenticate = authenticate
        self._hosts = None if hosts is None else frozenset(map(without_port, hosts))
        self._origins = frozenset(origins)
        self._login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = await self._refuse(scope, receive)
        await (self._app if refused is None else refused)(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._hosts is not None and without_port(host) not in self._hosts:
            detail = f"host {without_port(host)!r} is not allowed; add --allow-host {without_port(host)}"
            return problem(421, "UnknownHost", detail)
        if scope["method"] not in SAFE and self._is_foreign(headers, host):
            return problem(403, "ForeignSite", "a page of another site sent this request; name its origin with --cors")
        if path_within(scope).startswith(_PUBLIC):
            return None
        request = PlainRequest(scope, receive)
        try:
            caller = await self._authenticate(request)
        except ChatLedgerError as error:  # no handler of the routes is around this
            return problem_of(error)
        if caller is not None:
            request.state.caller = caller
            return None
        if self._login and scope["method"] in ("GET", "HEAD") and "text/html" in headers.get("accept", ""):
            return RedirectResponse(f"{scope.get('root_path', '')}/login?next={_asked(scope)}", status_code=303)
        detail = "send a token: `Authorization: Bearer TOKEN`"
        return problem(401, "Unauthenticated", detail, headers={"WWW-Authenticate": "Bearer"})

    def _is_foreign(self, headers: Headers, host: str) -> bool:
        """Whether a browser says that the page of another site sends the request. Other programs say nothing."""
        origin = headers.get("origin")
        if origin in self._origins:
            return False
        if origin is not None:
            try:
                return urlsplit(origin).netloc.lower() != host.lower()
            except ValueError:
                return True
        return headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}


def _asked(scope: Scope) -> str:
    """The path and the query as the browser sent them, to return to; none if they are too long."""
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    query = scope.get("query_string", b"")
    asked = path + (b"?" + query if query else b"")
    return quote(asked, safe="") if len(asked) <= _LONGEST_NEXT else ""


def without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
