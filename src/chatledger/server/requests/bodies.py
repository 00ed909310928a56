"""The bodies of requests and responses, where a model of the library alone does not do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from chatledger.models import Appended, ChatMessage, Page, Repair, RulesLevel, Usage
from chatledger.models.json import Json
from chatledger.models.messages import LENIENT
from chatledger.repositories.history import History
from chatledger.server.answers.pages import LARGEST, too_large, written
from chatledger.server.answers.sizes import Metadata, Title, require_short_names
from chatledger.server.problems import title_of
from chatledger.server.requests.json_request import is_number
from chatledger.storage.append.request import OnOpenCalls

T = TypeVar("T")


def whole(value: Any) -> Any:
    """To JSON, 1.0 is the integer 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, Field(ge=0), BeforeValidator(whole)]
"""An integer of a request: a number of a branch, a version or an index."""


class Body(BaseModel):
    """A request. An unknown field is an error, because its caller expects that it does something. So is a value of
    another type than the field's, such as 0 for false.
    """

    model_config = ConfigDict(extra="forbid", strict=True)


def _of_types(value: Any) -> Any:
    if isinstance(value, dict):
        counts = {name: _whole_numbers(count) for name, count in value.items() if name != "cost"}
        Usage.model_validate(counts, strict=True)
    return value


def _whole_numbers(value: Any) -> Any:
    return {name: whole(count) for name, count in value.items()} if isinstance(value, dict) else whole(value)


ReportedUsage = Annotated[Usage, BeforeValidator(_of_types)]
"""The usage of a request: its counts are numbers. A cost may be a text, which is exact."""


class Damage(BaseModel):
    """An item of the page that cannot be read."""

    type: str = Field(description="The kind of the error, such as `DamagedCell`.")
    title: str = Field(description="What the error means.")
    detail: str = Field(description="What is wrong, and where.")


class Items(BaseModel, Generic[T]):
    """A page of a list."""

    model_config = ConfigDict(json_schema_extra={"description": "A page of a list."})

    items: list[T] = Field(description="The items in order.")
    next_cursor: str | None = Field(None, description="Pass it as `cursor` for the next page; null at the end.")
    complete: bool = Field(True, description="False if a search stopped early. Ask for the next page.")
    damaged: list[Damage] = Field([], description="The items of this page that cannot be read.")

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """The name in the OpenAPI description: `ThreadItems`."""
        return f"{params[0].__name__}Items"


def items(page: Page[Any]) -> Items[Any]:
    damaged = [
        Damage(type=f"urn:chatledger:{type(error).__name__}", title=title_of(error), detail=str(error))
        for error in page.damaged
    ]
    return Items(items=page.items, next_cursor=page.next_cursor, complete=page.complete, damaged=damaged)


async def all_items(values: Sequence[Any]) -> Items[Any]:
    """A list that has no pages, such as the sums of groups. Raises LimitExceeded if it does not fit into an answer."""
    size = sum(await written(values))
    if size > LARGEST:
        raise too_large(size)
    return Items(items=list(values))


def _of_any_role(value: Any) -> Any:
    """The append judges the role, by the rules of the thread. `text` is ignored if the content is there, so that a
    message can be sent as it was read.
    """
    if not isinstance(value, dict):
        return value
    if "text" in value and "content" not in value:
        raise ValueError("text is made of content; send content")
    _require_time(value.get("created_at"))
    of_types = {name: whole(value[name]) for name in ("role", "is_error", "branch", "seq") if name in value}
    ChatMessage.model_validate(of_types, context=LENIENT, strict=True)
    return ChatMessage.model_validate({name: value[name] for name in value if name != "text"}, context=LENIENT)


def _require_time(value: Any) -> None:
    """Pydantic takes a number for the seconds since 1970."""
    if value is not None and (not isinstance(value, str) or is_number(value)):
        mistake = PydanticCustomError("datetime_type", "Input should be a time such as 2026-01-31T08:00:00Z")
        raise ValidationError.from_exception_data(
            "ChatMessage", [{"type": mistake, "loc": ("created_at",), "input": value}]
        )


Message = Annotated[ChatMessage, BeforeValidator(_of_any_role), AfterValidator(require_short_names)]
"""A message of a request. `thread_id`, `branch`, `seq` and the other fields that the ledger fills in are ignored."""


class ThreadFields(Body):
    """The thread that an append creates."""

    title: Title | None = Field(None, description="A title for people.")
    kind: str | None = Field(None, description="A word of the application's, by which lists can filter.")
    metadata: Metadata | None = Field(None, description="Data of the application about the thread.")
    rules: RulesLevel | None = Field(None, description="How strictly messages are judged; null for the ledger's level.")


class NewThread(ThreadFields):
    """A thread to create."""

    thread_id: str | None = Field(None, description="The id; the ledger makes one if there is none.")
    user_id: str | None = Field(None, description="The owner. A user's token creates threads of that user only.")
    exist_ok: bool = Field(False, description="Return the thread unchanged if it exists already.")


class ThreadUpdate(Body):
    """The fields of a thread to change. A field that is not sent stays, and null clears it."""

    title: Title | None = Field(None, description="A title for people.")
    metadata: Metadata | None = Field(None, description="Data of the application about the thread.")
    rules: RulesLevel | None = Field(None, description="How strictly messages are judged.")
    archived: bool = Field(False, description="Whether lists leave the thread out by default.")
    merge: bool = Field(False, description="Set the top-level keys of `metadata`, and keep its other keys.")


class KvPut(Body):
    """A value to put with the messages."""

    value: Json = Field(description="Any JSON.")
    expected: Whole | None = Field(None, description="The version that the stored value must have, 0 for no value.")


class Append(Body):
    """Messages to append: `messages` of the ledger's own model, or a `payload` in a format."""

    messages: list[Message] | None = Field(None, fail_fast=True, description="The messages in order.")
    payload: Json | None = Field(None, description="Messages in the format `format`, as its provider has them.")
    format: str | None = Field(None, description="The format of the payload; detected if there is none.")
    run_id: str | None = Field(None, description="The run of the messages. A run that does not exist is created.")
    branch: Whole | None = Field(None, description="The branch; null for the active one.")
    reply_to: str | None = Field(
        None, description="The id of a message to append behind. If others follow it, a new branch becomes active."
    )
    alternative_to: str | None = Field(
        None, description="The id of a message to append beside, in its place, on a new branch that becomes active."
    )
    rules: RulesLevel | None = Field(None, description="How strictly these messages are judged.")
    on_open_calls: OnOpenCalls = Field("error", description="What to do with calls that have no result yet.")
    kv: dict[str, KvPut] | None = Field(None, description="Values of the thread, by key, to put with the messages.")
    create: bool | ThreadFields = Field(
        False, description="Create the thread if it does not exist: true, or its fields."
    )


class LostValue(BaseModel):
    """A value that a conversion could not express."""

    code: str = Field(description="The kind of the loss.")
    seq: int | None = Field(None, description="The position of the message.")
    path: str = Field(description="The path of the value.")


class Repaired(BaseModel):
    """A change of a prompt, without which the provider would refuse the history."""

    code: str = Field(description="The kind of the repair.")
    seq: int | None = Field(None, description="The position of the message.")
    detail: str = Field(description="What was changed.")


class Stored(BaseModel):
    """The result of an append."""

    last_seq: int = Field(description="The last position of the branch after the append.")
    mark: str = Field(description="The state of the branch after the append. Send it in `If-Match`.")
    replayed: bool = Field(description="Whether an earlier request had stored the messages.")
    messages: list[ChatMessage] = Field(description="The messages as they were stored.")
    losses: list[LostValue] = Field([], description="The values of a payload that could not be stored as they came.")

    @classmethod
    def of(cls, appended: Appended) -> Stored:
        return _from(cls, appended)


class MessagePage(BaseModel):
    """A window of a branch: its messages, or the payload in the format that was asked for."""

    thread_id: str = Field(description="The thread.")
    branch: int | None = Field(None, description="The branch that was read.")
    last_seq: int = Field(description="The last position of the branch, that of the draft included.")
    mark: str = Field(description="The state of the branch. Send it in `If-Match` with an append.")
    previous_cursor: str | None = Field(None, description="Pass it as `before` for the messages before the window.")
    next_cursor: str | None = Field(None, description="Pass it as `after` for the messages after the window.")
    items: list[ChatMessage] = Field(description="The finished messages in order of seq.")
    draft: ChatMessage | None = Field(None, description="The message at the end that is still being written.")
    payload: Any = Field(None, description="With `format`: the messages as that format's own API takes them.")
    losses: list[LostValue] = Field([], description="With `format`: what the format could not express.")

    @classmethod
    def of(cls, history: History, **written: Any) -> MessagePage:
        return _from(cls, history, items=history.messages, **written)


class Prompt(BaseModel):
    """A branch as a provider accepts it."""

    thread_id: str = Field(description="The thread.")
    branch: int = Field(description="The branch that was read.")
    last_seq: int = Field(description="The last position of the branch, that of the draft included.")
    mark: str = Field(description="The state of the branch. Send it in `If-Match` with the append of the answer.")
    payload: Any = Field(description="The messages as the provider's API takes them.")
    repairs: list[Repaired] = Field(description="What was changed, so that the provider accepts the history.")

    @classmethod
    def of(cls, history: History, payload: Any, repairs: Sequence[Repair]) -> Prompt:
        return _from(cls, history, payload=payload, repairs=[Repaired(**asdict(repair)) for repair in repairs])


M = TypeVar("M", bound=BaseModel)


def _from(model: type[M], source: object, **others: Any) -> M:
    """The model with the fields of the same names. Messages are models, so they are not validated again. Losses become
    models one by one: while Pydantic checks a whole list, no other thread runs.
    """
    fields = {name: getattr(source, name) for name in model.model_fields if hasattr(source, name)}
    if "losses" in fields:
        fields["losses"] = [LostValue(**asdict(loss)) for loss in fields["losses"]]
    return model.model_validate({**fields, **others})


Order = Literal["active", "created"]
