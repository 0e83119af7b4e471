#!/bin/sh
# Installs what `npm test` needs beside npm packages: Debian packages, a Vault built from tools/vault, a Gitea built from
# tools/gitea, and git clients built from tools/clients into ${XDG_CACHE_HOME:-~/.cache}/devplat-peers. Does only what is missing; a second run ends
# at once.
set -eu
root=$(CDPATH='' cd -P -- "$(dirname -- "$0")/.." && pwd -P)

# The Go that Vault's go.mod asks for; older ones that may fetch another by themselves will do too (1.21 and up).
GO_TOOLCHAIN_FETCHER_MINOR=21

fail() {
  printf 'setup:peers: %s\n' "$*" >&2
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
have_postgres() {
  for folder in /usr/lib/postgresql/*/bin; do [ -x "$folder/postgres" ] && return 0; done
  have postgres && have initdb
}
have_http_backend() { [ -x "$(git --exec-path 2>/dev/null)/git-http-backend" ]; }
have_chromium() { have chromium || have chromium-browser || have google-chrome; }
# A Go that lies outside PATH, where its own installer puts it, counts as well.
find_go() {
  for go in "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go/bin/go; do
    [ -x "$go" ] || continue
    minor=$("$go" env GOVERSION | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
    [ "${minor:-0}" -ge "$GO_TOOLCHAIN_FETCHER_MINOR" ] && return 0
  done
  go=
  return 1
}

vault_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/$(cat "$root/tools/vault/go.mod" "$root/tools/vault/go.sum" | sha256sum | cut -c1-12)"
have_vault() { [ -x "$vault_folder/vault" ] && [ -x "$vault_folder/plugins/vault-ldap" ]; }

gitea_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/gitea-$(cat "$root/tools/gitea/go.mod" "$root/tools/gitea/go.sum" | sha256sum | cut -c1-12)"
have_gitea() { [ -x "$gitea_folder/gitea" ] && [ -d "$gitea_folder/static/templates" ]; }

# A virtual environment breaks when the Python that it was made with goes: it has to be tried.
schemathesis_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/schemathesis-$(sha256sum < "$root/tools/schemathesis/requirements.txt" | cut -c1-12)"
have_schemathesis() { "$schemathesis_folder/bin/python" -c 'import schemathesis' 2>/dev/null; }

readers_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/readers-$(sha256sum < "$root/tools/readers/requirements.txt" | cut -c1-12)"
have_readers() { "$readers_folder/bin/python" -c 'import yaml, ruamel.yaml, dotenv, javaproperties' 2>/dev/null; }

packages=
need() { packages="$packages $*"; }
have_http_backend || need git
have_postgres || need postgresql
have_chromium || need chromium
have openssl || need openssl
have nginx || [ -x /usr/sbin/nginx ] || need nginx-light
have ps || need procps
have curl || need curl
have jq || need jq
have ssh || need openssh-client
have setpriv || need util-linux
have script || need bsdutils
have swtpm || need swtpm
have softhsm2-util || need softhsm2
have pkcs11-tool || need opensc
ls /usr/lib*/*/engines-3/pkcs11.so >/dev/null 2>&1 || need libengine-pkcs11-openssl
have Xvfb || need xvfb
have xclip || need xclip
have xsel || need xsel
have xdg-open || need xdg-utils
have dbus-daemon || need dbus
have dunst && have dunstctl || need dunst
have notify-send || need libnotify-bin
have zsh || need zsh
have fish || need fish
have gh || need gh
have sshd || [ -x /usr/sbin/sshd ] || need openssh-server
have slapd || [ -x /usr/sbin/slapd ] || need slapd
[ -e /etc/ssl/certs/ca-certificates.crt ] || need ca-certificates
# The pip of ensurepip lies in a package of its own on Debian.
python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv
have java && have javac || need default-jdk-headless
clients_todo=$(sh "$root/tools/clients/build.sh" --todo)
case "$clients_todo" in *jgit*) have mvn || need maven ;; esac
case "$clients_todo" in *go-git*) find_go || need golang-go ;; esac
have_vault && have_gitea || find_go || need golang-go
# Gitea's SQLite is C.
have_gitea || have gcc || need gcc libc6-dev

if [ -n "$packages" ]; then
  have apt-get || fail "missing here:$packages; install them with this system's package manager, then run this again"
  as_root=
  if [ "$(id -u)" -ne 0 ]; then
    have sudo || fail "missing here:$packages; install them as root, or install sudo, then run this again"
    as_root=sudo
  fi
  echo "setup:peers: installing$packages"
  # A machine that serves nothing of its own: the packages must not start servers.
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null
  # shellcheck disable=SC2086 # one word per package
  $as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -q -y --no-install-recommends $packages </dev/null
fi

if ! have_vault; then
  find_go || fail "no Go 1.$GO_TOOLCHAIN_FETCHER_MINOR or later for building Vault: install a newer Go, then run this again"
  echo "setup:peers: building Vault with $("$go" version) (about 5 minutes the first time) ..."
  # Built aside and renamed: a build that was cut leaves nothing half.
  aside="$vault_folder.$$"
  trap 'rm -rf "$aside"' EXIT
  trap 'exit 1' HUP INT TERM
  mkdir -p "$aside/plugins" "$aside/sources"
  # From copies: the second build may add to go.sum, and the folder's name is made from the originals.
  cp "$root/tools/vault/go.mod" "$root/tools/vault/go.sum" "$aside/sources/"
  cd "$aside/sources"
  "$go" build -tags minimal -trimpath -ldflags "-s -w" -o "$aside/vault" github.com/hashicorp/vault ||
    fail "Vault did not build"
  "$go" build -mod=mod -trimpath -ldflags "-s -w" -o "$aside/plugins/vault-ldap" \
    github.com/hashicorp/vault/builtin/credential/ldap/cmd/ldap || fail "Vault's LDAP plugin did not build"
  cd "$root"
  rm -rf "$aside/sources" "$vault_folder"
  mv "$aside" "$vault_folder"
fi
if ! have_gitea; then
  find_go || fail "no Go 1.$GO_TOOLCHAIN_FETCHER_MINOR or later for building Gitea: install a newer Go, then run this again"
  echo "setup:peers: building Gitea with $("$go" version) (about 5 minutes the first time) ..."
  aside="$gitea_folder.$$"
  trap 'rm -rf "$aside"' EXIT
  trap 'exit 1' HUP INT TERM
  mkdir -p "$aside/static" "$aside/sources"
  cp "$root/tools/gitea/go.mod" "$root/tools/gitea/go.sum" "$aside/sources/"
  cd "$aside/sources"
  "$go" build -mod=mod -tags "sqlite sqlite_unlock_notify" -trimpath -ldflags "-s -w" -o "$aside/gitea" \
    code.gitea.io/gitea || fail "Gitea did not build"
  module=$("$go" list -mod=mod -m -f '{{.Dir}}' code.gitea.io/gitea)
  for part in templates options public; do cp -R "$module/$part" "$aside/static/"; done
  # The module cache is read-only, and so would be the copy.
  chmod -R u+w "$aside/static"
  cd "$root"
  rm -rf "$aside/sources" "$gitea_folder"
  mv "$aside" "$gitea_folder"
fi
if ! have_schemathesis; then
  echo "setup:peers: installing schemathesis ..."
  aside="$schemathesis_folder.$$"
  trap 'rm -rf "$aside"' EXIT
  trap 'exit 1' HUP INT TERM
  python3 -m venv "$aside" || fail "Python made no virtual environment"
  "$aside/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
    --only-binary :all: -r "$root/tools/schemathesis/requirements.txt" || fail "schemathesis could not be installed"
  rm -rf "$schemathesis_folder"
  mv "$aside" "$schemathesis_folder"
  have_schemathesis || fail "schemathesis does not load"
fi
if ! have_readers; then
  echo "setup:peers: installing readers of configuration files for Python ..."
  aside="$readers_folder.$$"
  trap 'rm -rf "$aside"' EXIT
  trap 'exit 1' HUP INT TERM
  python3 -m venv "$aside" || fail "Python made no virtual environment"
  "$aside/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
    --only-binary :all: -r "$root/tools/readers/requirements.txt" || fail "the readers could not be installed"
  rm -rf "$readers_folder"
  mv "$aside" "$readers_folder"
  have_readers || fail "the readers do not load"
fi
if [ -n "$clients_todo" ]; then
  find_go || case "$clients_todo" in *go-git*)
    fail "no Go 1.$GO_TOOLCHAIN_FETCHER_MINOR or later for the Go client: install a newer Go, then run this again" ;;
  esac
  sh "$root/tools/clients/build.sh" "$go"
fi
echo "setup:peers: all there"
