#!/bin/sh
# Before a removal. An upgrade keeps the service running until the new version is there: deb calls this with "upgrade", rpm
# with "1". Other package managers do not call it for an upgrade.
set -e

case "${1:-}" in
  upgrade | failed-upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  for unit in svc.socket svc-metrics.socket svc.service; do
    if command -v deb-systemd-invoke >/dev/null 2>&1; then
      deb-systemd-invoke stop "$unit" >/dev/null 2>&1 || true
    else
      systemctl --no-reload disable --now "$unit" >/dev/null 2>&1 || true
    fi
  done
fi
