"""Each module belongs to core or to one annex, and core stays within its budget."""

from __future__ import annotations

from tests.core import ANNEXES, OWN, SHARED, TABLE, is_in, modules

MODULES = modules()


def is_core(module: str) -> bool:
    return module in SHARED or any(is_in(module, own) for own in OWN)


def test_each_module_is_of_core_or_of_one_annex() -> None:
    homes = {module: [is_core(module), *(is_in(module, annex) for annex in ANNEXES)] for module in MODULES}
    assert [module for module, found in homes.items() if sum(found) != 1] == []


def test_the_core_stays_within_its_budget() -> None:
    counts = {name: len(path.read_bytes().splitlines()) for name, path in MODULES.items() if is_core(name)}
    assert sum(counts.values()) <= TABLE["budget"]["lines"], sorted(counts.items(), key=lambda one: -one[1])[:20]
