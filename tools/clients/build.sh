#!/bin/sh
# Builds the git clients of the interop tests from their pins in tools/clients into
# ${XDG_CACHE_HOME:-~/.cache}/devplat-peers/NAME-KEY, where KEY is made from the pins: other pins, another folder.
# tests/testkit/src/client-programs.ts computes the same names. Does only what is missing.
#   build.sh GO      builds, with that go command
#   build.sh --todo  names the clients that are not built
set -eu
sources=$(CDPATH='' cd -P -- "$(dirname -- "$0")" && pwd -P)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/devplat-peers"

folder_of() { # NAME FILE...: the folder of a client's build
  client=$1
  shift
  echo "$cache/$client-$(cd "$sources/$client" && cat "$@" | sha256sum | cut -c1-12)"
}
python=$(folder_of python requirements.txt)
go_git=$(folder_of go-git go.mod go.sum main.go)
go_ssh=$(folder_of go-ssh go.mod go.sum main.go)
go_reader=$(folder_of go-reader go.mod main.go)
jgit=$(folder_of jgit pom.xml jars.sha256 Client.java)

# A virtual environment breaks when the Python that it was made with goes: it has to be tried.
have_python() { "$python/bin/python" -c 'import dulwich, pygit2' 2>/dev/null; }
have_go_git() { [ -x "$go_git/client" ]; }
have_go_ssh() { [ -x "$go_ssh/client" ]; }
have_go_reader() { [ -x "$go_reader/client" ]; }
have_jgit() { [ -e "$jgit/Client.class" ]; }

if [ "$1" = --todo ]; then
  have_python || echo python
  have_go_git || echo go-git
  have_go_ssh || echo go-ssh
  have_go_reader || echo go-reader
  have_jgit || echo jgit
  exit
fi
go=$1

fail() {
  printf 'setup:peers: %s\n' "$*" >&2
  exit 1
}
aside=
trap 'rm -rf "$aside"' EXIT
trap 'exit 1' HUP INT TERM
# Built aside and renamed: a build that was cut leaves nothing half.
begin() {
  echo "setup:peers: building the $2 ..."
  aside="$1.$$"
  mkdir -p "$aside"
}
finish() {
  rm -rf "$1"
  mv "$aside" "$1"
}

if ! have_python; then
  begin "$python" "Python clients"
  python3 -m venv "$aside" || fail "Python made no virtual environment"
  "$aside/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
    --only-binary :all: -r "$sources/python/requirements.txt" || fail "the Python clients could not be installed"
  finish "$python"
  have_python || fail "the Python clients do not load"
fi
if ! have_go_git; then
  begin "$go_git" "Go client"
  (cd "$sources/go-git" && "$go" build -trimpath -buildvcs=false -ldflags "-s -w" -o "$aside/client" .) ||
    fail "the Go client did not build"
  finish "$go_git"
fi
if ! have_go_ssh; then
  begin "$go_ssh" "Go client of SSH"
  (cd "$sources/go-ssh" && "$go" build -trimpath -buildvcs=false -ldflags "-s -w" -o "$aside/client" .) ||
    fail "the Go client of SSH did not build"
  finish "$go_ssh"
fi
if ! have_go_reader; then
  begin "$go_reader" "Go reader of files"
  (cd "$sources/go-reader" && "$go" build -trimpath -buildvcs=false -ldflags "-s -w" -o "$aside/client" .) ||
    fail "the Go reader of files did not build"
  finish "$go_reader"
fi
if ! have_jgit; then
  begin "$jgit" "Java client"
  # From a copy: Maven writes beside its pom.xml.
  cp "$sources/jgit/pom.xml" "$aside/"
  (cd "$aside" && mvn --quiet --batch-mode --no-transfer-progress \
    org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=jars) ||
    fail "Maven could not fetch the Java client's libraries"
  (cd "$aside/jars" && sha256sum --quiet --strict -c "$sources/jgit/jars.sha256") ||
    fail "a library of the Java client is not the pinned one"
  javac --release 17 -cp "$aside/jars/*" -d "$aside" "$sources/jgit/Client.java" ||
    fail "the Java client did not compile"
  finish "$jgit"
fi
