#!/bin/sh
# Before a removal: stops the daemons. An upgrade keeps them running until the new version is there: deb calls this with "upgrade", rpm
# with "1". Other package managers do not call it for an upgrade. Files of the users stay.
set -e

case "${1:-}" in
  upgrade | failed-upgrade | 1) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0

for manager in $(systemctl list-units --plain --no-legend --state=active --type=service "user@*.service" | cut -d" " -f1); do
  user=${manager#user@}
  user=${user%.service}
  # A unit of this user may not hold up the package manager.
  # A request to one of the first sockets would start the daemon again. The daemon needs the last one to unmount.
  for unit in agent-api.socket agent-docker.socket agent-peer.socket agent-ssh.socket agent.service agent-mount.socket; do
    timeout 120 systemctl --user --machine="$user@.host" stop "$unit" >/dev/null 2>&1 || true
  done
done
