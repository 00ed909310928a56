"""The style sheet and the script of the page."""

from __future__ import annotations

import hashlib
from importlib import resources

from fastapi import APIRouter, HTTPException
from starlette.responses import Response

from chatledger.server.callers.request_cookies import PlainRoute

router = APIRouter(route_class=PlainRoute)
_TYPES = {"page.css": "text/css", "page.js": "text/javascript"}
FILES = {name: (resources.files(__package__) / "static" / name).read_bytes() for name in _TYPES}
VERSION = hashlib.sha256(b"".join(FILES.values())).hexdigest()[:12]
"""Part of the addresses of the files, so that a browser can keep them until they change."""


@router.get("/static/{name}")
async def static(name: str, v: str = "") -> Response:
    """The file. A browser keeps it only under its own version: another server may have answered with another one."""
    if name not in FILES:
        raise HTTPException(404, "there is no such file")
    keeps = "public, max-age=31536000, immutable" if v == VERSION else "no-store"
    headers = {"Cache-Control": keeps, "X-Content-Type-Options": "nosniff"}
    return Response(FILES[name], media_type=_TYPES[name], headers=headers)
