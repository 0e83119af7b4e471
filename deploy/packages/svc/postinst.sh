#!/bin/sh
# After an install or upgrade. Arguments differ by package manager: deb "configure [old version]", rpm "1" or "2".
set -e

case "${1:-}" in
  abort-upgrade) exit 0 ;;
  # The removal, which had stopped the service, does not happen.
  abort-remove | abort-deconfigure)
    for unit in svc.socket svc-metrics.socket svc.service; do
      if systemctl is-enabled --quiet "$unit" 2>/dev/null; then systemctl start "$unit" || true; fi
    done
    exit 0
    ;;
esac

# "$2" is the version before, also after a removal on Debian. rpm has only the number of versions.
first=yes
if [ -n "${2:-}" ] || [ "${1:-}" = 2 ]; then first=; fi

# The user of the service. Its files outlive the service.
if command -v systemd-sysusers >/dev/null 2>&1 && [ -f /usr/lib/sysusers.d/svc.conf ]; then
  systemd-sysusers svc.conf
elif ! id svc >/dev/null 2>&1; then
  if command -v useradd >/dev/null 2>&1; then
    useradd --system --user-group --home-dir /var/lib/svc --no-create-home --shell /usr/sbin/nologin svc
  else
    addgroup -S svc
    adduser -S -D -H -h /var/lib/svc -s /sbin/nologin -G svc svc
  fi
fi

# Debian's package has no configuration of its own in /etc: an upgrade would ask what to do with a changed one.
if [ -f /usr/share/svc/svc.yaml ] && [ -n "$first" ] && [ ! -e /etc/svc/svc.yaml ] && [ ! -L /etc/svc/svc.yaml ]; then
  mkdir -p /etc/svc
  cp /usr/share/svc/svc.yaml /etc/svc/svc.yaml.new
  mv /etc/svc/svc.yaml.new /etc/svc/svc.yaml
fi

# The service reads its configuration. Nobody else but root does. The file can be missing: variables are enough. A mode that somebody
# has set later stays, and a link is its owner's.
if [ -f /etc/svc/svc.yaml ] && [ ! -L /etc/svc/svc.yaml ] && [ "$(stat -c %G /etc/svc/svc.yaml)" != svc ]; then
  chown root:svc /etc/svc/svc.yaml
  chmod 0640 /etc/svc/svc.yaml
fi

# A key for the secrets in the database. It is made once: another one could not read them. Where the file is missing later, the key
# can be elsewhere, such as in a credential of systemd, and a variable would win over it.
if [ -n "$first" ] && [ ! -e /etc/svc/svc.env ] && [ ! -L /etc/svc/svc.env ]; then
  key=$(od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n')
  if [ "${#key}" -ne 64 ]; then
    echo "svc: cannot make an encryption key: od gives no 32 random bytes of /dev/urandom" >&2
    exit 1
  fi
  mkdir -p /etc/svc
  (
    umask 077
    {
      echo "# Variables of the service with secrets. Keep a copy of the key elsewhere: without it, stored credentials are lost."
      echo "SVC_ENCRYPTION_KEY=$key"
    } >/etc/svc/svc.env.new
    mv /etc/svc/svc.env.new /etc/svc/svc.env
  )
  echo "svc: made an encryption key in /etc/svc/svc.env: keep a copy of it elsewhere"
  echo "svc: edit /etc/svc/svc.yaml, then run: systemctl enable --now svc"
fi

if [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
  # A service that runs takes the new version. One that does not run stays so.
  systemctl=systemctl
  if command -v deb-systemd-invoke >/dev/null 2>&1; then systemctl=deb-systemd-invoke; fi
  "$systemctl" try-restart svc.service >/dev/null ||
    echo "svc: the service does not start with this version. The reason: journalctl -u svc" >&2
fi
