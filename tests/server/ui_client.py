"""A chat client as the AI SDK's: it builds a UI message of the chunks, as strict as that about their order."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

Part = dict[str, Any]


@dataclass
class Page:
    """What a page shows of a chat. `received` counts the UTF-16 units of text that came for the message it builds."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    chunks: list[dict[str, Any]] = field(default_factory=list)
    received: int = 0
    resets: int = 0
    done: bool = False
    _texts: dict[str, Part] = field(default_factory=dict)
    _message: dict[str, Any] | None = None

    @property
    def last(self) -> dict[str, Any]:
        assert self._message is not None
        return self._message

    def begin(self, *, replays: bool = True, continues: bool = False) -> None:
        """A new stream. One that replays begins an empty message; others go on with what is there."""
        self.done = False
        if continues:
            self._texts, self._message = {}, self.messages[-1]
        elif replays:
            self._texts, self._message = {}, None

    def text(self) -> str:
        return "".join(part["text"] for part in self.last["parts"] if part["type"] == "text")

    def types(self) -> list[str]:
        return [chunk["type"] for chunk in self.chunks]

    def have(self) -> str:
        """What the page's line in the guide sends."""
        parts = [
            [
                part["type"],
                len(part.get("text", part.get("rawInput", "")).encode("utf-16-le", "surrogatepass")) // 2,
                part.get("state"),
                part.get("providerMetadata", {}).get("chatledger", {}).get("crc") or part.get("toolCallId"),
            ]
            for part in self.last["parts"]
        ]
        return json.dumps({"id": self.last["id"], "parts": parts})

    def take(self, chunk: dict[str, Any]) -> None:
        self.chunks.append(chunk)
        kind = chunk["type"]
        if kind == "start":
            if self._message is None or self._message["id"] != chunk["messageId"]:
                self._message = {"id": chunk["messageId"], "role": "assistant", "parts": []}
                self.messages = [one for one in self.messages if one["id"] != chunk["messageId"]]
                self.messages.append(self._message)
            return
        if kind in ("finish", "finish-step", "abort", "error"):
            return
        parts = self.last["parts"]
        if kind == "start-step":
            parts.append({"type": "step-start"})
        elif kind == "reset-step":
            self.resets += 1
            while parts and parts[-1]["type"] != "step-start":
                parts.pop()
            self._texts = {}
        elif kind in ("text-start", "reasoning-start"):
            self._texts[chunk["id"]] = part = {"type": kind.removesuffix("-start"), "text": "", "state": "streaming"}
            parts.append(part)
        elif kind in ("text-delta", "reasoning-delta"):
            part = self._texts[chunk["id"]]
            part["text"] += chunk["delta"]
            part["providerMetadata"] = chunk["providerMetadata"]
            self.received += len(chunk["delta"].encode("utf-16-le", "surrogatepass")) // 2
        elif kind in ("text-end", "reasoning-end"):
            self._texts.pop(chunk["id"])["state"] = "done"
        elif kind.startswith("tool-"):
            self._take_tool(kind, chunk)
        else:
            parts.append(chunk)

    def _take_tool(self, kind: str, chunk: dict[str, Any]) -> None:
        part = next((one for one in reversed(self.last["parts"]) if one.get("toolCallId") == chunk["toolCallId"]), None)
        if part is None:
            assert kind in ("tool-input-start", "tool-input-available"), chunk
            part = {"type": f"tool-{chunk['toolName']}", "toolCallId": chunk["toolCallId"], "rawInput": ""}
            self.last["parts"].append(part)
        if kind == "tool-input-start":
            part |= {"state": "input-streaming", "rawInput": ""}
        elif kind == "tool-input-delta":
            assert part["state"] == "input-streaming"
            part["rawInput"] += chunk["inputTextDelta"]
        elif kind == "tool-input-available":
            part |= {"state": "input-available", "input": chunk["input"]}
            part.pop("rawInput", None)
        elif kind == "tool-approval-request":
            approval = {"id": chunk["approvalId"], "requestReason": chunk.get("reason")}
            part |= {"state": "approval-requested", "approval": approval}
        elif kind == "tool-output-available":
            part |= {"state": "output-available", "output": chunk["output"]}
        elif kind == "tool-output-error":
            part |= {"state": "output-error", "errorText": chunk["errorText"]}
        else:
            part |= {"state": kind.removeprefix("tool-")}

    def decide(self, approved: bool, reason: str | None = None) -> None:
        for part in self.last["parts"]:
            if part.get("state") == "approval-requested":
                part["state"] = "approval-responded"
                part["approval"] |= {"approved": approved} | ({} if reason is None else {"reason": reason})


async def chunks_of(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """The chunks, and `{"type": "[DONE]"}` for the last line."""
    assert response.status_code == 200, await response.aread()
    assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert response.headers["content-type"].startswith("text/event-stream")
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            data = line.removeprefix("data: ")
            yield {"type": data} if data == "[DONE]" else json.loads(data)


def user(text: str, message_id: str) -> dict[str, Any]:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


@dataclass
class Chat:
    """A chat of a page with a server."""

    client: httpx.AsyncClient
    id: str = "t"
    agent: str = "support"
    page: Page = field(default_factory=Page)

    @property
    def api(self) -> str:
        return f"/v1/ai-sdk/{self.agent}"

    async def send(self, text: str, message_id: str, *, replaces: str | None = None) -> None:
        messages = self.page.messages
        if replaces is not None:
            at = next(at for at, one in enumerate(messages) if one["id"] == replaces)
            self.page.messages = messages[:at]
        self.page.messages.append(user(text, replaces or message_id))
        await self.post({} if replaces is None else {"messageId": replaces})

    async def regenerate(self) -> None:
        while self.page.messages[-1]["role"] == "assistant":
            self.page.messages.pop()
        await self.post({"trigger": "regenerate-message"})

    async def post(self, more: dict[str, Any], *, continues: bool = False) -> None:
        body = {"id": self.id, "messages": self.page.messages, "trigger": "submit-message", **more}
        self.page.begin(continues=continues)
        async with self.client.stream("POST", self.api, json=body) as response:
            await self._read(response)

    async def resume(self, *, exact: bool = False) -> bool:
        """False if no answer runs."""
        params = {"have": self.page.have()} if exact else {}
        self.page.begin(replays=not exact)
        async with self.client.stream("GET", f"{self.api}/{self.id}/stream", params=params) as response:
            if response.status_code == 204:
                return False
            await self._read(response)
        return True

    async def stop(self) -> None:
        response = await self.client.post(f"{self.api}/{self.id}/stop")
        assert response.status_code == 204, response.text

    async def _read(self, response: httpx.Response) -> None:
        async for chunk in chunks_of(response):
            if chunk["type"] == "[DONE]":
                self.page.done = True
            else:
                self.page.take(chunk)
