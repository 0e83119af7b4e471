#!/bin/sh
# Runs a TypeScript entry of the repository with its own Node 26, installing the npm packages first if a
# fresh clone has none. Usage: sh tools/run.sh ENTRY.ts [ARG ...]
set -eu
root=$(CDPATH='' cd -P -- "$(dirname -- "$0")/.." && pwd -P)
# shellcheck source=tools/node26.sh
. "$root/tools/node26.sh"
# The lock file as it was when this script installed: another one came with a newer version of the sources.
installed="$root/node_modules/.installed-package-lock.json"
is_outdated() { [ -f "$installed" ] && ! cmp -s "$root/package-lock.json" "$installed"; }
if [ -z "$NODE26" ] || [ ! -f "$root/node_modules/.package-lock.json" ] || is_outdated; then
  printf 'Installing npm packages (once, about a minute) ... ' >&2
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' HUP TERM
  # Without install scripts, which no package of ours needs, and without npm's words about the Node that runs npm: the
  # programs run on their own.
  if ! (cd "$root" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$log" 2>&1; then
    printf 'failed\n' >&2
    cat "$log" >&2
    echo "error: npm could not install the packages, see above: repair that, then run this again" >&2
    exit 1
  fi
  cp "$root/package-lock.json" "$installed"
  printf 'done\n' >&2
  rm -f "$log"
  trap - EXIT INT HUP TERM
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
