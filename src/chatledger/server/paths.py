"""Ids in paths. An id may hold any character, a slash too, so it is decoded only after the path is taken apart."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote, unquote, urlencode

from fastapi import Path
from pydantic import AfterValidator
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send


class EncodedPaths:
    """Routes by the path as the client sent it, in which `%2F` is part of an id and `/` is not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path")
        if scope["type"] == "http" and raw is not None:
            root = scope.get("root_path", "")
            segments = raw.decode("ascii", "replace").partition("?")[0].split("/")
            above = root.count("/") + 1
            if unquote("/".join(segments[:above])) == root:  # where the application is mounted
                scope = {**scope, "path": "/".join([root, *segments[above:]])}
        await self._app(scope, receive, send)


def _decode(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 after its percent signs are decoded") from None


PathId = Annotated[str, AfterValidator(_decode)]
"""An id in a path."""
ThreadId = Annotated[PathId, Path(description="The id of the thread, percent-encoded: a slash in it is `%2F`.")]
MessageId = Annotated[PathId, Path(description="The id of the message, percent-encoded.")]
RunId = Annotated[PathId, Path(description="The id of the run, percent-encoded.")]
FeedbackId = Annotated[
    PathId,
    Path(description="The id of the score, percent-encoded; `summary` as `%73ummary` and `compare` as `%63ompare`."),
]


class ScoreSegment(StringConvertor):
    """A segment that is no path beside the ids of scores: those have their own methods, and no other."""

    regex = "(?!(?:summary|compare)$)[^/]+"


register_url_convertor("score", ScoreSegment())


def api_path(*segments: object, **query: object) -> str:
    """A path of the API, to say where a thing is. An id may hold any character."""
    path = "/v1/" + "/".join(quote(str(segment), safe="") for segment in segments)
    return f"{path}?{urlencode(query)}" if query else path


def path_within(scope: Scope) -> str:
    """The path of the request behind the path at which the application is mounted."""
    path, root = scope["path"], scope.get("root_path", "")
    return str(path.removeprefix(root) or "/")
