"""How many cells each key has encrypted, so that a key is replaced before it wears out."""

from __future__ import annotations

from threading import Lock


class CellCounts:
    """The number of cells by the id of the key. Several threads encrypt at once."""

    __slots__ = ("_cells", "_turn")

    def __init__(self) -> None:
        self._cells: dict[str, int] = {}
        self._turn = Lock()

    def add(self, key_id: str, cells: int) -> None:
        with self._turn:
            self._cells[key_id] = self._cells.get(key_id, 0) + cells

    def read(self) -> dict[str, int]:
        with self._turn:
            return dict(self._cells)
