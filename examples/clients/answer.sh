#!/bin/sh
# Store a provider's stream while it comes. Usage: answer.sh LEDGER THREAD REQUEST PROVIDER, with a token in LEDGER_TOKEN.
# Run it again with the same REQUEST after a failure: an answer that is stored already is not stored twice.
set -eu
curl --silent --no-buffer "$4" |
  curl --silent --show-error --fail-with-body --upload-file - --request POST \
    --header "Authorization: Bearer $LEDGER_TOKEN" \
    --header "Idempotency-Key: $3" \
    --header "Content-Type: text/event-stream" \
    "$1/v1/threads/$2/drafts/upload?format=openai-chat"
