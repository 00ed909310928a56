"""The two views: the stable interface for people who read the ledger with SQL. The tables may change; the views do not.

`transcript` is the active branch of each thread, message by message, with the messages that a fork shares. `scores` is
feedback beside its run. Both show text with NUL or a lone surrogate as the text codec stores it.
"""

from __future__ import annotations

VIEWS = ("transcript", "scores")

_TRANSCRIPT = """
CREATE VIEW {schema}transcript AS
SELECT m.tenant_id, m.thread_id, m.seq, m.role, m.name,
  coalesce(m.text, (
    SELECT {join}(x, '') FROM (
      SELECT p.text AS x FROM {schema}message_parts p
      WHERE p.tenant_id = m.tenant_id AND p.thread_id = m.thread_id AND p.branch = m.branch AND p.seq = m.seq
        AND p.channel = 'content' AND p.kind = 'text'
      ORDER BY p.idx
    ) AS texts
  )) AS text,
  (
    SELECT {join}(x, ', ') FROM (
      SELECT c.name AS x FROM {schema}tool_calls c
      WHERE c.tenant_id = m.tenant_id AND c.thread_id = m.thread_id AND c.branch = m.branch AND c.seq = m.seq
      ORDER BY c.idx
    ) AS names
  ) AS tool_names,
  m.run_id, {time} AS created_at
FROM {schema}threads t
JOIN {schema}branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN {lineage}
JOIN {schema}messages m ON m.tenant_id = t.tenant_id AND m.thread_id = t.thread_id AND m.branch = {branch}
  AND m.seq >= {first} AND m.seq <= coalesce({last}, m.seq)
"""
_SCORES = """
CREATE VIEW {schema}scores AS
SELECT f.tenant_id, f.feedback_id, f.run_id, r.thread_id, r.agent, r.model, f.key, f.score, f.author, f.source,
  {time} AS created_at
FROM {schema}feedback f
JOIN {schema}runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.run_id
"""
_SPELLING = {
    "sqlite": {
        "join": "group_concat",
        "lineage": "json_each(b.lineage) AS l",
        "branch": "json_extract(l.value, '$[0]')",
        "first": "json_extract(l.value, '$[1]')",
        "last": "json_extract(l.value, '$[2]')",
        "time": """
    strftime('%Y-%m-%dT%H:%M:%S', ({row}.created_at - ({row}.created_at % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', ({row}.created_at % 1000000 + 1000000) % 1000000)""",
    },
    "postgresql": {
        "join": "string_agg",
        "lineage": "jsonb_array_elements(b.lineage::jsonb) AS l(value)",
        "branch": "(l.value->>0)::int",
        "first": "(l.value->>1)::bigint",
        "last": "(l.value->>2)::bigint",
        "time": """
    to_char({row}.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
    },
}


def create_view(name: str, dialect: str, schema: str | None) -> str:
    """The CREATE VIEW statement of one of VIEWS, with the schema written out."""
    spelling = _SPELLING[dialect]
    template, row = (_TRANSCRIPT, "m") if name == "transcript" else (_SCORES, "f")
    prefix = f'"{schema}".' if schema else ""
    return template.format(**spelling | {"schema": prefix, "time": spelling["time"].format(row=row)}).strip()
