"""The imports between the modules of chatledger form no cycle, those in functions and for type checking included."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import grimp


def test_the_import_graph_has_no_cycle() -> None:
    graph = grimp.build_graph("chatledger", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert "chatledger.models" in imports["chatledger"]  # for type checking: such imports are part of the graph
    cycle = find_cycle(imports)
    assert not cycle, " imports ".join(cycle)


def test_a_cycle_is_named_in_the_order_of_its_imports() -> None:
    cycle = find_cycle({"a": {"b", "d"}, "b": {"c", "d"}, "c": {"a"}, "d": set()})
    assert len(cycle) == 4
    assert " imports ".join(cycle) in "a imports b imports c imports a imports b imports c"


def test_a_graph_without_a_cycle_has_none() -> None:
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def find_cycle(imports: Mapping[str, set[str]]) -> list[str]:
    """Modules that each import the next one, with the first again at the end; empty if there is no cycle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        path: list[str] = error.args[1]
        return path[::-1]  # in graphlib's path, each module is imported by the next one
    return []
