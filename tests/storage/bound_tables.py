"""Which tables of a statement are not bound to its tenant.

A database that is distributed by tenant sends a statement to the one server that has the tenant's rows if each table is
bound. It refuses other statements, or sends them to all servers.

A table is bound if the query level whose FROM list names it compares its `tenant_id` with a parameter, or with that of
a bound table of the same list. Nothing else binds: no column of an outer query, as in LATERAL and in a correlated
subquery, and no column of a subquery or CTE, since PostgreSQL does not carry the tenant through a LIMIT, an OFFSET or a
window. An INSERT is bound if each row's `tenant_id` is a parameter, or that of a bound table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import sqlglot
from sqlglot import exp

from chatledger.storage.schema.tables import metadata

TABLES = frozenset(table.name for table in metadata.tables.values() if "tenant_id" in table.c)
_TENANT = "tenant_id"
_LEVELS = (exp.Select, exp.Insert, exp.Update, exp.Delete)


@cache
def unbound_tables(statement: str) -> Sequence[str]:
    """The names of the tables that are not bound, in the order of the statement. Raises for what is no statement."""
    tree = sqlglot.parse_one(statement, read="postgres")
    return [name for node in tree.walk() if isinstance(node, _LEVELS) for name in _Level(node).unbound()]


class _Level:
    """A query level: the sources that its FROM list names, and which of them are bound."""

    def __init__(self, node: exp.Expr) -> None:
        self._node = node
        self._sources = {source.alias_or_name: source for source in _sources(node)}
        self._bound: set[str] = set()
        before = -1
        while before != len(self._bound):  # a join binds a table to one that a later comparison may bind
            before = len(self._bound)
            self._bind()

    def unbound(self) -> Iterator[str]:
        for name, source in self._sources.items():
            if _is_ours(source) and name not in self._bound:
                yield source.name
        if isinstance(self._node, exp.Insert) and not self._inserts_its_tenant(self._node):
            yield _target(self._node).name

    def _bind(self) -> None:
        for left, right, only in self._comparisons():
            for own, other in ((left, right), (right, left)):
                name = self._source_of(own)
                if name is not None and only in (None, name) and self._names_the_tenant(other):
                    self._bound.add(name)

    def _names_the_tenant(self, value: exp.Expr) -> bool:
        return _is_parameter(value) or self._source_of(value) in self._bound

    def _comparisons(self) -> Iterator[tuple[exp.Expr, exp.Expr, str | None]]:
        """Both sides of each equation that every row fulfils. That of an outer join binds only the joined table."""
        where = self._node.args.get("where")
        for left, right in _equations(None if where is None else where.this):
            yield left, right, None
        for join in self._node.args.get("joins") or ():
            only = join.this.alias_or_name if join.side else None
            for left, right in _equations(join.args.get("on")):
                yield left, right, only

    def _source_of(self, value: exp.Expr) -> str | None:
        """The table of this level whose tenant the value is."""
        if not isinstance(value, exp.Column) or value.name != _TENANT:
            return None
        name = value.table or next(iter(self._sources), "")
        is_certain = bool(value.table) or len(self._sources) == 1
        return name if is_certain and name in self._sources and _is_ours(self._sources[name]) else None

    @staticmethod
    def _inserts_its_tenant(insert: exp.Insert) -> bool:
        if not _is_ours(_target(insert)):
            return True
        place = [column.name for column in insert.this.expressions].index(_TENANT)
        rows = insert.expression
        if isinstance(rows, exp.Values):
            return all(_is_parameter(row.expressions[place]) for row in rows.expressions)
        return all(_Level(one)._names_the_tenant(one.expressions[place].unalias()) for one in _selects(rows))


def _sources(node: exp.Expr) -> list[exp.Expr]:
    found = [node.this] if isinstance(node, (exp.Update, exp.Delete)) else []
    from_ = node.args.get("from_")
    found += [] if from_ is None else [from_.this]
    found += node.args.get("using") or []
    return found + [join.this for join in node.args.get("joins") or ()]


def _target(insert: exp.Expr) -> exp.Expr:
    target: exp.Expr = insert.this.this if isinstance(insert.this, exp.Schema) else insert.this
    return target


def _selects(query: exp.Expr) -> list[exp.Expr]:
    return [*_selects(query.left), *_selects(query.right)] if isinstance(query, exp.SetOperation) else [query]


def _is_ours(source: exp.Expr) -> bool:
    return isinstance(source, exp.Table) and bool(source.db) and source.name in TABLES


def _equations(condition: exp.Expr | None) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    if isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.And):
        yield from _equations(condition.left)
        yield from _equations(condition.right)
    elif isinstance(condition, exp.EQ):
        yield condition.left, condition.right


def _is_parameter(value: exp.Expr) -> bool:
    while isinstance(value, (exp.Cast, exp.Collate, exp.Paren)):
        value = value.this
    return isinstance(value, exp.Parameter)
