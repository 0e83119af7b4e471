#!/bin/sh
# Runs a TypeScript entry of the repository with its own Node 26, installing the npm packages first if a
# fresh clone has none. Usage: sh tools/run.sh ENTRY.ts [ARG ...]
set -eu
root=$(CDPATH='' cd -P -- "$(dirname -- "$0")/.." && pwd -P)
# shellcheck source=tools/node26.sh
. "$root/tools/node26.sh"
if [ -z "$NODE26" ] || [ ! -f "$root/node_modules/.package-lock.json" ]; then
  echo "Installing npm packages (first run) ..." >&2
  (cd "$root" && npm ci --no-audit --no-fund >&2)
  . "$root/tools/node26.sh"
fi
if [ -z "$NODE26" ]; then
  echo "error: no Node 26 in node_modules for $(uname -s) $(uname -m): run 'npm ci' without --omit=optional" >&2
  exit 1
fi
entry=$1
shift
cd "$root"
exec "$NODE26" --disable-warning=ExperimentalWarning "$root/$entry" "$@"
