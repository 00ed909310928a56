"""A check of our own, which schemathesis loads: the description and the server agree on what fits a route."""

from __future__ import annotations

from schemathesis.core.transport import Response  # type: ignore[import-not-found]
from schemathesis.generation import GenerationMode  # type: ignore[import-not-found]

import schemathesis  # type: ignore[import-not-found]


@schemathesis.check  # type: ignore[untyped-decorator]
def described_request_fits(ctx: schemathesis.CheckContext, response: Response, case: schemathesis.Case) -> None:
    """A request that fits the description may be refused for what is stored, and not as one that fits no route."""
    made = case.meta.generation.mode if case.meta is not None else None
    if made is GenerationMode.POSITIVE and response.status_code == 400:
        assert b"urn:chatledger:InvalidRequest" not in response.content, response.text[:400]
