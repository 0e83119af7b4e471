#!/bin/sh
# After an install or upgrade. The daemon of each user whose service manager runs takes the new version. One that does not run
# stays so.
set -e

case "${1:-}" in
  abort-upgrade | abort-remove | abort-deconfigure) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0

for manager in $(systemctl list-units --plain --no-legend --state=active --type=service "user@*.service" | cut -d" " -f1); do
  user=${manager#user@}
  user=${user%.service}
  # A unit of this user may not hold up the package manager.
  timeout 120 systemctl --user --machine="$user@.host" daemon-reload >/dev/null 2>&1 || continue
  timeout 120 systemctl --user --machine="$user@.host" try-restart agent.service ||
    echo "agent: the daemon of user $user does not start with this version. The reason: journalctl --user -u agent" >&2
done
