-- Sent when values of the thread that are stored already are written together with a message.
BEGIN IMMEDIATE;

UPDATE branches
SET last_seq = :last_seq, stamp = :new_stamp, last_role = :last_role, open_calls = :open_calls,
  partial_seq = :partial_seq
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND stamp = :stamp
  AND NOT EXISTS (
    SELECT 1
    FROM tenants
    WHERE tenant_id = :tenant AND encrypted_at IS NOT NULL
    UNION ALL
    SELECT 1
    FROM chatledger_version
    WHERE encrypted_at IS NOT NULL
  )
RETURNING 1;

-- Once for each row:
INSERT INTO messages (
  tenant_id, thread_id, branch, message_id, role, content_form, text, seq, state, created_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

INSERT INTO kv AS s (tenant_id, kind, scope_id, namespace, key, value, version, updated_at)
VALUES (:tenant, :kind, :scope_id, :namespace, :key, :value, :version, :now)
ON CONFLICT (tenant_id, kind, scope_id, namespace, key) DO UPDATE SET value = excluded.value,
  version = s.version + 1, updated_at = excluded.updated_at
RETURNING version;

COMMIT;
