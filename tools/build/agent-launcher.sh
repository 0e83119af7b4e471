#!/bin/sh
# Runs the bundled agent beside this file with the Node 26 that AGENT_NODE names or PATH holds.
self=$0
while [ -L "$self" ]; do
  link=$(readlink -- "$self")
  case $link in /*) self=$link ;; *) self=$(dirname -- "$self")/$link ;; esac
done
folder=$(CDPATH='' cd -P -- "$(dirname -- "$self")" && pwd -P) || exit 1
# Compiled code is kept, so that a second start does not pay for it again; in a folder that nobody else can write.
case "${XDG_CACHE_HOME:-}" in /*) cache=$XDG_CACHE_HOME ;; *) cache=$HOME/.cache ;; esac
NODE_COMPILE_CACHE=${NODE_COMPILE_CACHE:-$cache/daemon/compile}
export NODE_COMPILE_CACHE
# The young generation of its heap is kept small, and C memory in one piece: a daemon that mostly sleeps needs no more,
# and starts quicker.
MALLOC_ARENA_MAX=${MALLOC_ARENA_MAX:-1}
export MALLOC_ARENA_MAX
exec "${AGENT_NODE:-node}" --disable-warning=ExperimentalWarning --max-semi-space-size=1 "$folder/agent.cjs" "$@"
