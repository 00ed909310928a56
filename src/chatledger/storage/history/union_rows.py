"""The layout of the rows of a UNION over a branch row, messages, parts and calls.

A row is the number of its arm, then the row of a message as `decode_messages` expects it. So messages, which are most
rows, are cut out in one piece. A column of another table stands where a message has one of its type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

from chatledger.storage.rows.messages import CALL_COLUMNS, LONG_COLUMNS, MESSAGE_COLUMNS, PART_COLUMNS

HEADER, MESSAGE, PART, CALL = range(4)
"""The numbers of the arms."""
_COLUMNS = ("arm", "branch", *MESSAGE_COLUMNS)
_TYPES = {"arm": "int", "branch": "int", "seq": "bigint", "call_count": "int", "is_error": "boolean"}
_TYPES |= {"created_at": "timestamptz"}
PLACES = {name: _COLUMNS.index(name) for name in _TYPES} | {"idx": _COLUMNS.index("call_count")}
"""The places of the columns that are no text."""
TEXT_PLACES = [place for place, name in enumerate(_COLUMNS) if name not in _TYPES]


def places(columns: Sequence[str]) -> dict[str, int]:
    """The places of the columns of a table in a row of the union. Text columns keep their order."""
    texts = dict(zip([name for name in columns if name not in PLACES], TEXT_PLACES, strict=False))
    return {name: PLACES[name] if name in PLACES else texts[name] for name in columns}


def row(arm: int | str, values: Mapping[int, str]) -> str:
    """A row of the union with these values at their places, and NULL at the others."""
    nulls = (f"NULL::{_TYPES.get(name, 'text')}" for name in _COLUMNS)
    return ", ".join(str(arm) if not place else values.get(place, null) for place, null in enumerate(nulls))


def row_of(arm: int | str, alias: str, columns: Sequence[str]) -> str:
    """The row of the union with the columns of a row of a table, and its branch."""
    place_of = places(("branch", *columns))
    return row(arm, {place: f"{alias}.{name}{'::int' if name == 'idx' else ''}" for name, place in place_of.items()})


MESSAGE_OF = itemgetter(slice(1, None))
PART_OF, CALL_OF = (itemgetter(*places(("branch", *columns)).values()) for columns in (PART_COLUMNS, CALL_COLUMNS))
_LONG = {places(columns)[name] for columns, long in LONG_COLUMNS for name in long}
LONG_OF = [itemgetter(place) for place in sorted(_LONG)]
"""Each takes a long text out of a row, whichever table the row is of."""
