"""Lists of blocks as lists of parts, and the residuals of the parts by their index."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.formats.anthropic.blocks import read_block, write_block
from chatledger.formats.wire.residual import nested
from chatledger.models import Part
from chatledger.models.json import JsonValue

PARTS = "parts"


def read_parts(
    blocks: Sequence[JsonValue], path: str, *, lenient: bool, at: Sequence[int] | None = None
) -> tuple[list[Part], dict[str, JsonValue]]:
    """The parts and what their section of the residual holds; `at` says where the blocks stand, if not in a row."""
    parts: list[Part] = []
    residuals: dict[str, JsonValue] = {}
    for idx, (place, block) in enumerate(zip(at or range(len(blocks)), blocks, strict=True)):
        part, residual = read_block(block, f"{path}[{place}]", lenient=lenient)
        parts.append(part)
        if residual is not None:
            residuals[str(idx)] = residual
    return parts, residuals


def write_parts(parts: Sequence[Part], residual: JsonValue) -> list[dict[str, JsonValue]]:
    """The blocks of parts; one that no block says is left out."""
    written = (write_block(part, nested(residual, PARTS, str(idx))) for idx, part in enumerate(parts))
    return [block for block in written if block is not None]
