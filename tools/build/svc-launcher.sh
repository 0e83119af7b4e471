#!/bin/sh
# Runs the bundled svc beside this file with the Node 26 that SVC_NODE names or PATH holds.
self=$0
while [ -L "$self" ]; do
  link=$(readlink -- "$self")
  case $link in /*) self=$link ;; *) self=$(dirname -- "$self")/$link ;; esac
done
folder=$(CDPATH='' cd -P -- "$(dirname -- "$self")" && pwd -P) || exit 1
node=${SVC_NODE:-node}
case $("$node" --version 2>/dev/null) in
  v2[6-9].* | v[3-9][0-9].*) ;;
  *)
    echo "svc: needs Node 26 or newer: put it into PATH, or name it with SVC_NODE" >&2
    exit 1
    ;;
esac
# Compiled code is kept, so that the next start does not pay for it again; in a folder that nobody else can write.
case "${XDG_CACHE_HOME:-}" in /*) cache=$XDG_CACHE_HOME ;; *) cache=${HOME:-/nonexistent}/.cache ;; esac
NODE_COMPILE_CACHE=${NODE_COMPILE_CACHE:-$cache/svc/compile}
export NODE_COMPILE_CACHE
# As in the launcher of the sources: blocks of megabytes that come and go with each pack are not to be kept in pieces.
export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-32768}"
export MALLOC_MMAP_MAX_="${MALLOC_MMAP_MAX_:-16384}"
# Few arenas: otherwise each thread gets its own, and what is freed in one of them serves no other thread.
export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"
# Without the optimizing compiler for WebAssembly: it takes some 40 ms of CPU and 20 MB for the parser of the code host's answers,
# in the first seconds of a process, and saves microseconds of each answer.
wasm='--no-wasm-dynamic-tiering --no-wasm-tier-up'
# A small place for new objects: the buffers of requests that are over wait there for its next collection.
young='--max-semi-space-size=8'
# --use-system-ca: what git and curl trust on this machine is trusted here, too.
exec "$node" --disable-warning=ExperimentalWarning --use-system-ca $wasm $young "$folder/lib/main.js" "$@"
