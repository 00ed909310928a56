"""The views: the stable interface for people who read the ledger with SQL. The tables may change; the columns of a view
stay, and new ones come at the end. Both databases have the same views with the same columns.

- `transcript`: the active branch of each thread, message by message, with the messages that a fork shares.
- `calls`: the tool calls on that path, each with the result that answers it there.
- `run_usage`: each run with its thread's user, its tokens, its cost and its seconds.
- `usage_by_day`: the same summed by the day in UTC on which the run started.
- `scores`: the feedback that counts, beside its run: the latest of each target, key and user, unless it was retracted
  (`storage/repositories/feedback.py`).

On PostgreSQL, a time is TIMESTAMPTZ, a day DATE and a cost NUMERIC. On SQLite, times and days are ISO text in UTC, and
a cost is REAL. JSON is text on both, because one stored NaN or NUL would break a cast for the whole view. Text with NUL
or a lone surrogate is shown as the text codec stores it.
"""

from __future__ import annotations

_TRANSCRIPT = """
CREATE VIEW {schema}transcript AS
SELECT m.tenant_id, m.thread_id, m.seq, m.role, m.name,
  {text[m]} AS text,
  (
    SELECT {join}(x, ', ') FROM (
      SELECT c.name AS x FROM {schema}tool_calls c
      WHERE c.tenant_id = m.tenant_id AND c.thread_id = m.thread_id AND c.branch = m.branch AND c.seq = m.seq
      ORDER BY c.idx
    ) AS names
  ) AS tool_names,
  m.run_id, {time[m.created_at]} AS created_at,
  t.user_id, m.message_id, m.branch, m.state
FROM {schema}threads t
JOIN {schema}branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN {lineage[l]}
JOIN {schema}messages m ON m.tenant_id = t.tenant_id AND m.thread_id = t.thread_id AND m.branch = {branch[l]}
  AND m.seq >= {first[l]} AND m.seq <= coalesce({last[l]}, m.seq)
"""
# A call that branches share may have a result on each of them; the result on the active path is shown.
_CALLS = """
CREATE VIEW {schema}calls AS
SELECT c.tenant_id, c.thread_id, c.branch, c.seq, c.idx, m.message_id, c.call_id, c.name, c.arguments,
  a.seq AS result_seq,
  {text[a]} AS result,
  a.is_error, {time[m.created_at]} AS called_at, {time[a.created_at]} AS answered_at
FROM {schema}threads t
JOIN {schema}branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN {lineage[l]}
JOIN {schema}tool_calls c ON c.tenant_id = t.tenant_id AND c.thread_id = t.thread_id AND c.branch = {branch[l]}
  AND c.seq >= {first[l]} AND c.seq <= coalesce({last[l]}, c.seq)
JOIN {schema}messages m ON m.tenant_id = c.tenant_id AND m.thread_id = c.thread_id AND m.branch = c.branch
  AND m.seq = c.seq
LEFT JOIN {schema}tool_results r ON r.tenant_id = c.tenant_id AND r.thread_id = c.thread_id
  AND r.call_branch = c.branch AND r.call_seq = c.seq AND r.call_idx = c.idx
  AND EXISTS (
    SELECT 1 FROM {lineage[p]}
    WHERE r.branch = {branch[p]} AND r.seq >= {first[p]} AND r.seq <= coalesce({last[p]}, r.seq)
  )
LEFT JOIN {schema}messages a ON a.tenant_id = r.tenant_id AND a.thread_id = r.thread_id AND a.branch = r.branch
  AND a.seq = r.seq
"""
_RUN_USAGE = """
CREATE VIEW {schema}run_usage AS
SELECT r.tenant_id, r.run_id, r.thread_id, t.user_id, r.agent, r.model, r.status, r.input_tokens, r.output_tokens,
  r.total_tokens, {cost} AS cost, {time[r.started_at]} AS started_at, {time[r.ended_at]} AS ended_at,
  {seconds} AS seconds
FROM {schema}runs r
JOIN {schema}threads t ON t.tenant_id = r.tenant_id AND t.thread_id = r.thread_id
"""
_USAGE_BY_DAY = """
CREATE VIEW {schema}usage_by_day AS
SELECT d.tenant_id, d.day, d.user_id, d.agent, d.model, count(*) AS runs,
  CAST(sum(d.input_tokens) AS bigint) AS input_tokens, CAST(sum(d.output_tokens) AS bigint) AS output_tokens,
  CAST(sum(d.total_tokens) AS bigint) AS total_tokens, sum(d.cost) AS cost
FROM (
  SELECT r.tenant_id, {day[r.started_at]} AS day, t.user_id, r.agent, r.model, r.input_tokens,
    r.output_tokens, r.total_tokens, {cost} AS cost
  FROM {schema}runs r
  JOIN {schema}threads t ON t.tenant_id = r.tenant_id AND t.thread_id = r.thread_id
) AS d
GROUP BY d.tenant_id, d.day, d.user_id, d.agent, d.model
"""
_SCORES = """
CREATE VIEW {schema}scores AS
SELECT f.tenant_id, f.feedback_id, f.run_id, r.thread_id, r.agent, r.model, f.key, f.score, f.author, f.source,
  {time[f.created_at]} AS created_at,
  coalesce(f.message_id, m.message_id) AS message_id, f.user_id, f.call_idx AS call_index
FROM (
  SELECT s.tenant_id, s.feedback_id, s.run_id, s.key, s.score, s.author, s.source, s.created_at, s.message_id,
    s.user_id, s.call_idx, s.retracted_at, s.thread_id, s.branch, s.seq,
    row_number() OVER (
      PARTITION BY s.tenant_id, s.run_id, s.branch, s.seq, s.call_idx, s.key, s.user_id
      ORDER BY s.created_at DESC, s.feedback_id DESC
    ) AS recency
  FROM {schema}feedback s
) AS f
JOIN {schema}runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.run_id
LEFT JOIN {schema}messages m ON m.tenant_id = f.tenant_id AND m.thread_id = f.thread_id AND m.branch = f.branch
  AND m.seq = f.seq
WHERE f.recency = 1 AND f.retracted_at IS NULL
"""
_TEXT = """coalesce({r}.text, (
    SELECT {join}(x, '') FROM (
      SELECT p.text AS x FROM {schema}message_parts p
      WHERE p.tenant_id = {r}.tenant_id AND p.thread_id = {r}.thread_id AND p.branch = {r}.branch AND p.seq = {r}.seq
        AND p.channel = 'content' AND p.kind = 'text'
      ORDER BY p.idx
    ) AS texts
  ))"""
_TEMPLATES = {
    "transcript": _TRANSCRIPT,
    "calls": _CALLS,
    "run_usage": _RUN_USAGE,
    "usage_by_day": _USAGE_BY_DAY,
    "scores": _SCORES,
}
VIEWS = tuple(_TEMPLATES)

_SPELLING = {
    "sqlite": {
        "join": "group_concat",
        "cost": "CAST(r.cost AS REAL)",
        "seconds": "(r.ended_at - r.started_at) / 1000000.0",
        "lineage": "json_each(b.lineage) AS {r}",
        "branch": "json_extract({r}.value, '$[0]')",
        "first": "json_extract({r}.value, '$[1]')",
        "last": "json_extract({r}.value, '$[2]')",
        "time": """
    strftime('%Y-%m-%dT%H:%M:%S', ({r} - ({r} % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', ({r} % 1000000 + 1000000) % 1000000)""",
        "day": "strftime('%Y-%m-%d', ({r} - ({r} % 1000000 + 1000000) % 1000000) / 1000000, 'unixepoch')",
    },
    "postgresql": {
        "join": "string_agg",
        "cost": "r.cost",
        "seconds": "extract(epoch FROM r.ended_at - r.started_at)::float8",
        "lineage": "jsonb_array_elements(b.lineage::jsonb) AS {r}(value)",
        "branch": "({r}.value->>0)::int",
        "first": "({r}.value->>1)::bigint",
        "last": "({r}.value->>2)::bigint",
        "time": "{r}",
        "day": "({r} AT TIME ZONE 'UTC')::date",
    },
}
_OF_A_ROW = ("lineage", "branch", "first", "last", "time", "day", "text")


class _OfRow(dict[str, str]):
    """The spelling of something that is about a row: `{time[m.created_at]}` in a template."""

    def __init__(self, template: str) -> None:
        super().__init__()
        self._template = template

    def __missing__(self, row: str) -> str:
        return self._template.replace("{r}", row)


def create_view(name: str, dialect: str, schema: str | None) -> str:
    """The CREATE VIEW statement of one of VIEWS, with the schema written out."""
    same = {"schema": f'"{schema}".' if schema else "", "join": _SPELLING[dialect]["join"]}
    spelling = _SPELLING[dialect] | same | {"text": _TEXT.format(**same, r="{r}")}
    of_row = {word: _OfRow(spelling[word]) for word in _OF_A_ROW}
    return _TEMPLATES[name].format(**spelling | of_row).strip()
