"""The bodies of requests and responses, under the names that OpenAI gives them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from chatledger.models import Thread
from chatledger.models.json import JsonObject
from chatledger.server.requests.bodies import Body

MOST_ITEMS = 20
"""The most items of a request, as OpenAI has it."""

Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], Field(max_length=16)
]
NewItemList = Annotated[list[Any], Field(max_length=MOST_ITEMS)]


class NewConversation(Body):
    """A conversation to create."""

    items: NewItemList | None = Field(None, description="Up to 20 items in order, as the Responses API has them.")
    metadata: Metadata | None = Field(None, description="Up to 16 texts of up to 512 characters, by keys of up to 64.")


class ConversationUpdate(Body):
    """The metadata that takes the place of the old one."""

    metadata: Metadata | None = Field(description="Up to 16 texts of up to 512 characters, by keys of up to 64.")


class NewItems(Body):
    """Items to append."""

    items: NewItemList = Field(description="Up to 20 items in order, as the Responses API has them.")


class ConversationResource(BaseModel):
    """A conversation without its items."""

    id: str = Field(description="The id, which is also the id of the thread.")
    object: Literal["conversation"] = Field("conversation", description="The kind of the object.")
    created_at: int = Field(description="The time of the creation, in seconds since 1970.")
    metadata: JsonObject = Field(description="The metadata of the thread.")

    @classmethod
    def of(cls, thread: Thread) -> ConversationResource:
        return cls(id=thread.thread_id, created_at=int(thread.created_at.timestamp()), metadata=thread.metadata or {})


class DeletedConversation(BaseModel):
    """A conversation that was deleted."""

    id: str = Field(description="The id of the conversation.")
    object: Literal["conversation.deleted"] = Field("conversation.deleted", description="The kind of the object.")
    deleted: Literal[True] = Field(True, description="Always true.")


class ErrorDetail(BaseModel):
    """What is wrong with a request, in the words of OpenAI."""

    message: str = Field(description="What is wrong, and where.")
    type: Literal["invalid_request_error", "server_error"] = Field(description="Whose error it is.")
    param: str | None = Field(description="The place in the request, such as `items[1].content`.")
    code: str = Field(description="The kind of the error.")


class ErrorBody(BaseModel):
    """The body of an error. OpenAI's client makes its exceptions of it."""

    error: ErrorDetail = Field(description="The error.")


class _List(BaseModel):
    object: Literal["list"] = Field("list", description="The kind of the object.")
    first_id: str | None = Field(description="The id of the first element; null if there is none.")
    last_id: str | None = Field(description="The id of the last element. Pass it as `after` for the next page.")
    has_more: bool = Field(description="Whether there are elements behind the last one.")


class ConversationList(_List):
    """A page of conversations."""

    data: list[ConversationResource] = Field(description="The conversations in order.")


class ItemList(_List):
    """A page of items."""

    data: list[JsonObject] = Field(description="The items in order, as OpenAI returns them.")
