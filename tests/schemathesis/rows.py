"""What the requests find: threads of the user with messages, a run and a score, and conversations with items.

`schemathesis.toml` names their ids. There are several of each, since some requests delete them.
"""

from __future__ import annotations

import httpx

MANY = 12


def add_rows(url: str, token: str) -> None:
    """Add the rows as the user of the token."""
    with httpx.Client(base_url=f"{url}/v1", headers={"Authorization": f"Bearer {token}"}, timeout=120) as client:
        for number in range(MANY):
            for path, body in _requests(number):
                client.post(path, json=body).raise_for_status()


def _requests(number: int) -> list[tuple[str, dict[str, object]]]:
    thread, run, score, conversation = (f"{kind}{number}" for kind in ("thread", "run", "score", "conversation"))
    call = {"id": "call1", "name": "weather", "arguments": '{"city": "Tokyo"}'}
    messages = [
        {"role": "user", "content": "What is the weather?", "message_id": f"m{number}"},
        {"role": "assistant", "content": [{"kind": "text", "text": "I look."}], "tool_calls": [call]},
        {"role": "tool", "content": "Sunny", "tool_call_id": "call1", "message_id": f"result{number}"},
    ]
    item = {"type": "message", "role": "user", "content": "Hello", "id": f"item{number}"}
    return [
        (f"/threads/{thread}/messages", {"messages": messages, "create": {"title": "Weather"}, "run_id": run}),
        ("/feedback", {"run_id": run, "key": "thumb", "score": 1, "message_id": f"m{number}", "feedback_id": score}),
        ("/threads", {"thread_id": conversation, "kind": "conversation", "rules": "lenient"}),
        (f"/conversations/{conversation}/items", {"items": [item]}),
    ]
