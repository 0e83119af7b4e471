#!/bin/sh
# Installs what `npm test` needs beside npm packages: Debian packages, a Vault built from tools/vault, a Gitea built from
# tools/gitea, S3 servers built from tools/versitygw and tools/minio, a Helm from tools/helm, a collector from tools/otelcol,
# a newer git from Debian's sources, and git clients built from tools/clients into ${XDG_CACHE_HOME:-~/.cache}/devplat-peers. Does
# only what is missing; a second run ends at once. `npm test` runs it.
# What a step prints is shown only when the step fails.
set -eu
root=$(CDPATH='' cd -P -- "$(dirname -- "$0")/.." && pwd -P)

# The Go that Vault's go.mod asks for; older ones that may fetch another by themselves will do too (1.21 and up).
GO_TOOLCHAIN_FETCHER_MINOR=21

fail() {
  printf 'setup:peers: %s\n' "$*" >&2
  exit 1
}
log=$(mktemp)
aside=
ticker=
cleanup() {
  [ -z "$ticker" ] || kill "$ticker" 2>/dev/null || true
  rm -rf "$log" ${aside:+"$aside"}
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

# step MINUTES NAME COMMAND [ARG ...]: runs one step, with a line when it begins, each minute, and when it ends.
step_number=0
step() {
  minutes=$1 name=$2
  shift 2
  step_number=$((step_number + 1))
  printf '[%d/%d] %s (about %d min) ...\n' "$step_number" "$step_count" "$name" "$minutes"
  began=$(date +%s)
  (
    passed=0
    while sleep 60 >/dev/null 2>&1; do
      passed=$((passed + 1))
      printf '      %s: %d min so far\n' "$name" "$passed"
    done
  ) &
  ticker=$!
  # Not the condition of an "if", where a failure in the middle of a function would count for nothing.
  set +e
  (set -e; "$@") >"$log" 2>&1
  status=$?
  set -e
  kill "$ticker" 2>/dev/null || true
  ticker=
  if [ "$status" -ne 0 ]; then
    tail -n 40 "$log" >&2
    fail "$name: not installed, see above. What was done before stays; run it again to go on"
  fi
  printf '      done in %d s\n' $(($(date +%s) - began))
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

# Pins and sources of a build in Go, in the order that gives the folder's name. testkit computes the same name.
go_sources() { # NAME
  for file in "$root/tools/$1/go.mod" "$root/tools/$1/go.sum" "$root/tools/$1"/*.go; do
    [ ! -f "$file" ] || echo "$file"
  done
}
go_folder() { # NAME
  key=$(go_sources "$1" | while read -r file; do cat "$file"; done | sha256sum | cut -c1-12)
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/$1-$key"
}

gitea_folder=$(go_folder gitea)
have_gitea() { [ -x "$gitea_folder/gitea" ] && [ -d "$gitea_folder/static/templates" ]; }

# Two S3 servers of different makers.
versitygw_folder=$(go_folder versitygw)
minio_folder=$(go_folder minio)
have_versitygw() { [ -x "$versitygw_folder/versitygw" ]; }
have_minio() { [ -x "$minio_folder/minio" ]; }

# A virtual environment breaks when the Python that it was made with goes: it has to be tried.
schemathesis_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/schemathesis-$(sha256sum < "$root/tools/schemathesis/requirements.txt" | cut -c1-12)"
have_schemathesis() { "$schemathesis_folder/bin/python" -c 'import schemathesis' 2>/dev/null; }

readers_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/readers-$(sha256sum < "$root/tools/readers/requirements.txt" | cut -c1-12)"
have_readers() { "$readers_folder/bin/python" -c 'import yaml, ruamel.yaml, dotenv, javaproperties' 2>/dev/null; }

# Runtimes, compilers and bundlers for the tests of the published packages.
consumers_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/consumers-$(cat "$root/tools/consumers/package.json" "$root/tools/consumers/package-lock.json" | sha256sum | cut -c1-12)"
have_consumers() { [ -f "$consumers_folder/node_modules/rollup/package.json" ]; }

# OpenSSH's own test scripts, from the source package of Debian that the machine's ssh is from.
openssh_regress_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/openssh-regress"
have_openssh_regress() { [ -f "$openssh_regress_folder/regress/agent-restrict.sh" ]; }

# A git newer than Debian's stable one, with its own test scripts.
newer_git_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/newer-git"
have_newer_git() { [ -x "$newer_git_folder/bin/git" ] && [ -x "$newer_git_folder/t/helper/test-tool" ]; }

# The checker of alert rules. Only the program: Debian's package would start a Prometheus.
promtool_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/promtool"
have_promtool() { have promtool || [ -x "$promtool_folder/promtool" ]; }

helm_folder=$(go_folder helm)
have_helm() { [ -x "$helm_folder/helm" ]; }

# The OpenTelemetry Collector with only what the tests use.
otelcol_folder=$(go_folder otelcol)
have_otelcol() { [ -x "$otelcol_folder/otelcol" ]; }

# Schemas of an API server and of the Prometheus operator: files of Go modules, with their checksums.
schemas_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/kubernetes-$(sha256sum < "$root/tools/kubernetes/modules" | cut -c1-12)"
have_schemas() { [ -f "$schemas_folder/apis__apps__v1_openapi.json" ]; }

# Test suites of file systems, from crates.io.
suites_folder="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers/filesystem-suites-$(sha256sum < "$root/tools/filesystem-suites/crates" | cut -c1-12)"
have_suites() { [ -x "$suites_folder/bin/fsx" ] && [ -x "$suites_folder/bin/pjdfstest" ]; }
# A Cargo outside of PATH, where rustup puts it, counts too. The suites need 1.85.
find_cargo() {
  for cargo in "$(command -v cargo || true)" "$HOME/.cargo/bin/cargo"; do
    [ -x "$cargo" ] || continue
    minor=$("$cargo" --version | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')
    [ "${minor:-0}" -ge 85 ] && return 0
  done
  cargo=
  return 1
}

# Every user may open it, as with Debian's udev. Where there is no such device, its tests fail.
have_fuse_device() { [ ! -e /dev/fuse ] || [ "$(stat -c %a /dev/fuse)" = 666 ]; }

packages=
need() { packages="$packages $*"; }
have_http_backend || need git
have_postgres || need postgresql
have_chromium || need chromium
have chromium-headless-shell || have google-chrome || need chromium-headless-shell
have openssl || need openssl
have nginx || [ -x /usr/sbin/nginx ] || need nginx-light
have caddy || need caddy
have ps || need procps
have curl || need curl
have jq || need jq
have age || need age
have mkfs.ext4 || [ -x /usr/sbin/mkfs.ext4 ] || need e2fsprogs
have ssh || need openssh-client
have plink || need putty-tools
have setpriv || need util-linux
have ip || [ -x /sbin/ip ] || need iproute2
have script || need bsdutils
have fusermount3 || need fuse3
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
have groff || need groff-base
have readelf || need binutils
have unzip || need unzip
have gh || need gh
have sshd || [ -x /usr/sbin/sshd ] || need openssh-server
have slapd || [ -x /usr/sbin/slapd ] || need slapd
have dockerd || [ -x /usr/sbin/dockerd ] || need docker.io
have podman || need podman
have rootlesskit || need rootlesskit
have slirp4netns || need slirp4netns
have newuidmap || need uidmap
have busybox || need busybox-static
have docker-compose || need docker-compose
have kubectl || need kubernetes-client
have rsync || need rsync
have direnv || need direnv
have vim || need vim
have nano || need nano
have emacs || need emacs-nox
[ -e /etc/ssl/certs/ca-certificates.crt ] || need ca-certificates
# The pip of ensurepip lies in a package of its own on Debian.
python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv
have java && have javac || need default-jdk-headless
clients_todo=$(sh "$root/tools/clients/build.sh" --todo)
case "$clients_todo" in *jgit*) have mvn || need maven ;; esac
case "$clients_todo" in *go-*) find_go || need golang-go ;; esac
have_vault && have_gitea && have_versitygw && have_minio && have_helm && have_otelcol && have_schemas || find_go || need golang-go
# Debian's package cargo is too old.
have_suites || find_cargo || need cargo-web
# Gitea's SQLite is C.
have_gitea && have_newer_git || have gcc || need gcc libc6-dev
have_newer_git || have make || need make
have_newer_git || have curl-config || need libcurl4-openssl-dev
have_newer_git || [ -f /usr/include/zlib.h ] || need zlib1g-dev
# The web server of git's tests. This package starts none.
[ -x /usr/sbin/apache2 ] || need apache2-bin

as_root=
if [ "$(id -u)" -ne 0 ]; then as_root="sudo -n"; fi
if [ -n "$packages" ]; then
  have apt-get || fail "missing here:$packages. Install them with this system's package manager, then run it again"
  if [ -n "$as_root" ] && ! sudo -n true 2>/dev/null; then
    fail "missing here; run: sudo apt-get install -y --no-install-recommends$packages"
  fi
fi

# Everything that is to do, and what it takes on two idle cores, before the first step.
todo= step_count=0 total=0
plan() { # MINUTES NAME
  step_count=$((step_count + 1))
  total=$((total + $1))
  todo="${todo:+$todo, }$2"
}
[ -z "$packages" ] || plan 3 "Debian packages"
have_fuse_device || plan 1 "access to /dev/fuse"
have_vault || plan 5 "Vault"
have_gitea || plan 5 "Gitea"
have_versitygw || plan 1 "versitygw"
have_minio || plan 2 "MinIO"
have_schemathesis || plan 1 "schemathesis"
have_readers || plan 1 "Python readers"
have_consumers || plan 1 "runtimes and bundlers"
have_promtool || plan 1 "promtool"
have_openssh_regress || plan 1 "OpenSSH's test scripts"
have_newer_git || plan 4 "newer git"
have_helm || plan 2 "Helm"
have_otelcol || plan 2 "OpenTelemetry Collector"
have_schemas || plan 1 "schemas of Kubernetes"
have_suites || plan 1 "test suites of file systems"
[ -z "$clients_todo" ] || plan 4 "git clients"
if [ "$step_count" -eq 0 ]; then
  echo "setup:peers: all there"
  exit 0
fi
echo "The tests need programs that are not here yet: $todo. Installing them once takes about $total min."
[ -z "$packages" ] || echo "Debian packages:$packages"

# A machine that serves nothing of its own: the packages must not start servers.
install_packages() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null
  # shellcheck disable=SC2086 # one word per package
  $as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -q -y --no-install-recommends $packages </dev/null
}

# Each build runs in a temporary folder that is renamed at its end: an interrupted one leaves nothing partial.
need_go() {
  find_go || fail "no Go 1.$GO_TOOLCHAIN_FETCHER_MINOR or later for building: install a newer Go, then run this again"
}

build_vault() {
  mkdir -p "$aside/plugins" "$aside/sources"
  # From copies: the second build may add to go.sum, and the folder's name is made from the originals.
  cp "$root/tools/vault/go.mod" "$root/tools/vault/go.sum" "$aside/sources/"
  cd "$aside/sources"
  "$go" build -tags minimal -trimpath -ldflags "-s -w" -o "$aside/vault" github.com/hashicorp/vault
  "$go" build -mod=mod -trimpath -ldflags "-s -w" -o "$aside/plugins/vault-ldap" \
    github.com/hashicorp/vault/builtin/credential/ldap/cmd/ldap
}

build_gitea() {
  mkdir -p "$aside/static" "$aside/sources"
  cp "$root/tools/gitea/go.mod" "$root/tools/gitea/go.sum" "$aside/sources/"
  cd "$aside/sources"
  "$go" build -mod=mod -tags "sqlite sqlite_unlock_notify" -trimpath -ldflags "-s -w" -o "$aside/gitea" \
    code.gitea.io/gitea
  module=$("$go" list -mod=mod -m -f '{{.Dir}}' code.gitea.io/gitea)
  for part in templates options public; do cp -R "$module/$part" "$aside/static/"; done
  # The module cache is read-only, and so would be the copy.
  chmod -R u+w "$aside/static"
}

build_go() { # NAME PACKAGE
  mkdir -p "$aside/sources"
  go_sources "$1" | while read -r file; do cp "$file" "$aside/sources/"; done
  cd "$aside/sources"
  "$go" build -trimpath -ldflags "-s -w" -o "$aside/$1" "$2"
}

fetch_schemas() {
  mkdir -p "$aside/sources"
  cd "$aside/sources"
  while read -r module version sum; do
    GOFLAGS=-mod=mod "$go" mod download -json "$module@$version" >module.json
    [ "$(jq -r .Sum module.json)" = "$sum" ] || { echo "$module@$version has another checksum than $sum"; return 1; }
    folder=$(jq -r .Dir module.json)
    for file in "$folder"/api/openapi-spec/v3/api*_openapi.json \
      "$folder"/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml; do
      [ ! -f "$file" ] || cp "$file" "$aside/"
    done
  done <"$root/tools/kubernetes/modules"
  chmod -R u+w "$aside"
}

# Downloads a source package of Debian into $aside/sources/archives. Its lists are copies of the machine's own ones, which may name
# binary packages only.
download_source() { # PACKAGE [SUITE]
  mkdir -p "$aside/sources/parts" "$aside/sources/lists/partial" "$aside/sources/archives"
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -f "$list" ] || sed -E "s/^deb ((\\[[^]]*\\] )?[^ ]+) ([^ ]+)/deb-src \\1 ${2:-\\3}/" "$list" \
      >"$aside/sources/parts/$(basename "$list" .list)-src.list"
  done
  for list in /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$list" ] || sed "s/^Types:.*/Types: deb-src/${2:+; s/^Suites:.*/Suites: $2/}" "$list" \
      >"$aside/sources/parts/$(basename "$list")"
  done
  set -- "$1" -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$aside/sources/parts" \
    -o "Dir::State::Lists=$aside/sources/lists" -o APT::Sandbox::User=root
  package=$1
  shift
  # A list of another project may have no source packages, or not this suite.
  apt-get "$@" update -q || true
  cd "$aside/sources/archives"
  apt-get "$@" source -q --download-only "$package"
}

fetch_openssh_regress() {
  download_source openssh
  tar -xzf openssh_*.orig.tar.gz --strip-components=1 -C "$aside" --wildcards '*/regress'
}

# With the programs and the data of git's own tests. RUNTIME_PREFIX: it is built in a folder that is renamed.
build_newer_git() {
  download_source git sid
  mkdir "$aside/sources/git"
  tar -xf git_*.orig.tar.* --strip-components=1 -C "$aside/sources/git"
  cd "$aside/sources/git"
  set -- NO_RUST=1 NO_TCLTK=1 NO_GETTEXT=1 NO_PYTHON=1 NO_PERL=1 NO_OPENSSL=1 NO_EXPAT=1 RUNTIME_PREFIX=1 \
    NO_INSTALL_HARDLINKS=1 INSTALL_SYMLINKS=1 "prefix=$aside" CFLAGS=-O2
  make -j2 "$@" all t/helper/test-tool
  make "$@" install
  mv GIT-BUILD-OPTIONS t templates "$aside/"
}

fetch_promtool() {
  mkdir -p "$aside/sources"
  cd "$aside/sources"
  # As root apt would complain that its sandbox user cannot write here.
  apt-get -q -o APT::Sandbox::User=root download prometheus
  dpkg-deb -x prometheus_*.deb .
  mv usr/bin/promtool "$aside/promtool"
}

install_suites() {
  find_cargo || fail "no Cargo 1.85 or later for building: install a newer Rust, then run this again"
  while read -r crate version; do
    "$cargo" install --quiet --debug --locked --root "$aside" --target-dir "$aside/sources" "$crate@$version"
  done <"$root/tools/filesystem-suites/crates"
}

install_python() { # a folder of tools with a requirements.txt
  python3 -m venv "$aside"
  "$aside/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
    --only-binary :all: -r "$root/tools/$1/requirements.txt"
}

install_consumers() {
  mkdir -p "$aside"
  cp "$root/tools/consumers/package.json" "$root/tools/consumers/package-lock.json" "$aside/"
  cd "$aside"
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
}

# build MINUTES NAME FOLDER COMMAND [ARG ...]: a step that fills $aside, which then becomes FOLDER.
build() {
  minutes=$1 name=$2 folder=$3
  shift 3
  aside="$folder.$$"
  step "$minutes" "$name" "$@"
  rm -rf "$aside/sources" "$folder"
  mv "$aside" "$folder"
  aside=
}

if [ -n "$packages" ]; then step 3 "Debian packages" install_packages; fi
have_fuse_device || step 1 "access to /dev/fuse" $as_root chmod 0666 /dev/fuse
if ! have_vault; then
  need_go
  build 5 "Vault" "$vault_folder" build_vault
fi
if ! have_gitea; then
  need_go
  build 5 "Gitea" "$gitea_folder" build_gitea
fi
if ! have_versitygw; then
  need_go
  build 1 "versitygw" "$versitygw_folder" build_go versitygw github.com/versity/versitygw/cmd/versitygw
fi
if ! have_minio; then
  need_go
  build 2 "MinIO" "$minio_folder" build_go minio github.com/minio/minio
fi
if ! have_schemathesis; then
  build 1 "schemathesis" "$schemathesis_folder" install_python schemathesis
  have_schemathesis || fail "schemathesis does not load"
fi
if ! have_readers; then
  build 1 "Python readers" "$readers_folder" install_python readers
  have_readers || fail "the Python readers do not load"
fi
have_consumers || build 1 "runtimes and bundlers" "$consumers_folder" install_consumers
if ! have_helm; then
  need_go
  build 2 "Helm" "$helm_folder" build_go helm helm.sh/helm/v3/cmd/helm
fi
if ! have_otelcol; then
  need_go
  build 2 "OpenTelemetry Collector" "$otelcol_folder" build_go otelcol .
fi
if ! have_schemas; then
  need_go
  build 1 "schemas of Kubernetes" "$schemas_folder" fetch_schemas
fi
have_suites || build 1 "test suites of file systems" "$suites_folder" install_suites
have_promtool || build 1 "promtool" "$promtool_folder" fetch_promtool
have_openssh_regress || build 1 "OpenSSH's test scripts" "$openssh_regress_folder" fetch_openssh_regress
have_newer_git || build 4 "newer git" "$newer_git_folder" build_newer_git
if [ -n "$clients_todo" ]; then
  case "$clients_todo" in *go-*) need_go ;; *) find_go || true ;; esac
  step 4 "git clients" sh "$root/tools/clients/build.sh" "$go"
fi
echo "setup:peers: all there"
