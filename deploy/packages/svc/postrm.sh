#!/bin/sh
# After a removal. Configuration, key and data stay. Only Debian's purge removes them.
set -e

if [ "${1:-}" = purge ]; then
  rm -f /etc/svc/svc.yaml /etc/svc/svc.yaml.new /etc/svc/svc.env /etc/svc/svc.env.new
  rmdir /etc/svc 2>/dev/null || true
  for unit in svc.service svc.socket svc-metrics.socket; do
    rm -f /etc/systemd/system/*.wants/"$unit"
  done
  # A mount point cannot be removed. Its content is.
  for folder in /var/lib/svc /var/cache/svc; do
    rm -rf "$folder" || echo "svc: $folder is left" >&2
  done
fi
if [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
fi
