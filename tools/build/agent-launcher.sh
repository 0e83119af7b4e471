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
# A daemon that mostly sleeps: the young generation of its heap is kept small, C memory in one piece, and
# code is interpreted or compiled plainly. The optimizing compilers and their code would cost 25 MB for good.
MALLOC_ARENA_MAX=${MALLOC_ARENA_MAX:-1}
export MALLOC_ARENA_MAX
exec "${AGENT_NODE:-node}" --disable-warning=ExperimentalWarning --max-semi-space-size=1 --optimize-for-size \
  --no-opt --no-maglev "$folder/agent.cjs" "$@"
