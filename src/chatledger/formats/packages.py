"""The formats that installed packages name, as entry points of the group `chatledger.formats`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chatledger.errors import InvalidArgument
from chatledger.formats.codec import Codec, checked

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "chatledger.formats"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the codec of a package lies. Its text says it, with the name of the package."""

    point: EntryPoint

    def load(self) -> Codec:
        """Raises anything that the module of the package raises, and InvalidArgument for what is no codec."""
        codec = checked(self.point.load())
        if codec.name != self.point.name:
            raise InvalidArgument("codec", f"is named {codec.name!r}, but its entry point is named {self.point.name!r}")
        return codec

    def __str__(self) -> str:
        package = "" if self.point.dist is None else f" of the package {self.point.dist.name}"
        return f"{self.point.value}{package}"


def find_places(taken: Collection[str]) -> tuple[dict[str, Place], dict[str, str]]:
    """The places of formats by name, and why other names cannot be used. Loads no package."""
    from importlib.metadata import entry_points  # takes longer than loading a format, and few programs need it

    found: dict[str, list[Place]] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, []).append(Place(point))
    places, faults = {}, {}
    for name, named in found.items():
        spelled = " and ".join(sorted({str(place) for place in named}))
        if name in taken:
            faults[name] = f"of {spelled} is not used: the name belongs to chatledger"
        elif len({place.point.value for place in named}) > 1:
            faults[name] = f"is not used: {spelled} have the same name; uninstall one of them"
        else:
            places[name] = named[0]
    return places, faults
