#!/usr/bin/env bash
# The main job in one go: start a node, put 41 documents in, ask three questions, verify a receipt offline.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/.venv/bin:$PATH"
home="${DEMO_DIR:-$PWD/.demo}"
data="$home/data"
mkdir -p "$home"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "1. Start a node (nats-server, Postgres, vector engine, all eight services)"
affidavit up --data-dir "$data" --listen 127.0.0.1:0 >"$home/up.log" 2>&1 &
node=$!
stop() { kill -TERM "$node" 2>/dev/null || true; wait "$node" 2>/dev/null || true; }
trap stop EXIT
for _ in $(seq 600); do
    grep -q '^ready$' "$home/up.log" && break
    kill -0 "$node" 2>/dev/null || { cat "$home/up.log"; exit 1; }
    sleep 0.2
done
cat "$home/up.log"
export AFFIDAVIT_DATA_DIR="$data"

say "2. Put the documents of the ferry company Skerry Line in"
run affidavit ingest deploy/demo/documents

say "3. Ask"
run affidavit ask "When does check-in close for foot passengers?" --receipt "$home/receipt.cbor"
echo
run affidavit ask "What is the maximum wind in knots for the Corran Sound?"
echo
run affidavit ask "How long is the turbocharger TC-88 under warranty?"

say "4. Pin the signing keys, stop the node, and verify the first receipt as a stranger would: offline"
run affidavit receipt keys -o "$home/keys"
stop
trap - EXIT
run affidavit-verify "$home/receipt.cbor" --keys "$home/keys"
