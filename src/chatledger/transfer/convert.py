"""Convert a file from one format to another, without a ledger.

Conversion uses the shapes of import and export, so its result equals that of an import followed by an export in the
other format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

from chatledger.errors import FormatError, UnknownFormat
from chatledger.formats import get_codec
from chatledger.models import ChatMessage, Loss
from chatledger.models.json import JsonValue
from chatledger.transfer.assemble import foreign_record, own_record
from chatledger.transfer.detect import ShapeOfFile
from chatledger.transfer.envelope import Envelope, Parcel, take_out
from chatledger.transfer.records import BadRecord, Container, Record, read_records
from chatledger.transfer.report import FailedRecord
from chatledger.transfer.shapes import BranchMessages, Shape, require_writable, shape_names
from chatledger.transfer.shapes.requests import each_request
from chatledger.transfer.shapes.shape import Measured


@dataclass(frozen=True, slots=True)
class Conversion:
    """From one format, or "auto", to another. `field` is the field of the messages; None is the format's usual one."""

    source: str
    target: str
    field: str | None = None
    carry: bool = False


@dataclass(frozen=True, slots=True)
class Converted:
    """A record in the other format. `losses` lists the values that it cannot express, by the seq of their message."""

    value: JsonValue
    container: Container
    place: str
    read_as: str
    losses: Sequence[Loss] = ()


def convert_file(
    stream: BinaryIO, conversion: Conversion, *, file: str, lines: bool = False
) -> Iterator[Converted | FailedRecord]:
    """Convert the records of a stream one by one. Yields a FailedRecord for a bad record.

    Raises UnknownFormat for an unknown name, and for a file whose first record matches no known format.
    """
    shapes = ShapeOfFile(conversion.source, conversion.field)
    if conversion.target not in shape_names():
        get_codec(conversion.target)  # accepts an alias, and raises UnknownFormat before anything is read
    for outer in read_records(stream, field=conversion.field, lines=lines):
        for record in each_request(outer):
            yield _converted(record, shapes, conversion, file)


def _converted(
    record: Record | BadRecord, shapes: ShapeOfFile, conversion: Conversion, file: str
) -> Converted | FailedRecord:
    if isinstance(record, BadRecord):
        return FailedRecord(file, record.place, record.error)
    try:
        return _convert(record, shapes.of(record), conversion)
    except UnknownFormat as error:
        failure = FailedRecord(file, record.place, error)
        if record.item is None:
            raise UnknownFormat(error.format, str(failure)) from error
        return failure
    except FormatError as error:
        return FailedRecord(file, record.place, error)


def _convert(record: Record, shape: Shape, conversion: Conversion) -> Converted:
    parcel = take_out(record.value, shape.locate(record.value, conversion.field))
    conversation = shape.decode(parcel.payload, "lenient")
    written = _written(parcel, _envelope(record, shape, parcel), _with_seqs(conversation.branches), conversion)
    losses = [*conversation.losses, *(Loss("repeated-key", None, key) for key in record.repeated), *written.losses]
    # A recording is one object, but its requests become an array.
    container = record.container if record.item is None else "array"
    return Converted(written.payload, container, record.place, shape.name, losses)


def _written(parcel: Parcel, envelope: Envelope, branches: list[BranchMessages], conversion: Conversion) -> Measured:
    if conversion.target == envelope.format:
        return own_record(parcel.rest, envelope, branches, carry=conversion.carry)
    require_writable(conversion.target)
    return foreign_record(parcel.rest, envelope, branches, conversion.target, carry=conversion.carry)


def _envelope(record: Record, shape: Shape, parcel: Parcel) -> Envelope:
    return Envelope(
        shape.name, record.container, "", "", record.index, path=parcel.path, keys=parcel.keys, single=parcel.single
    )


def _with_seqs(branches: Sequence[BranchMessages]) -> list[BranchMessages]:
    """Number the messages as a ledger would. Losses name the seq, and ids are derived from it."""
    return [replace(branch, messages=_numbered(branch.messages, branch.at + 1)) for branch in branches]


def _numbered(messages: Sequence[ChatMessage], first: int) -> list[ChatMessage]:
    return [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, first)]
