"""The unmodified client of OpenAI, against the application in this process and against real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from openai import AsyncOpenAI


def openai_of(app: FastAPI, user: str = "*", **options: Any) -> AsyncOpenAI:
    """A client of the application in this process, as that user; `*` is the administrator."""
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    http_client = httpx2.AsyncClient(transport=transport)
    given: dict[str, Any] = {"max_retries": 0, "default_headers": {"X-User": user}, **options}
    return AsyncOpenAI(base_url="http://testserver/v1", api_key="none", http_client=http_client, **given)


@pytest.fixture
async def openai(app: FastAPI) -> AsyncIterator[AsyncOpenAI]:
    """The client of the administrator."""
    async with openai_of(app) as client:
        yield client
