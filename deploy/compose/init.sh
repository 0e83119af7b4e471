#!/bin/sh
# Makes what compose.yaml needs: secrets/ with new random secrets, svc.yaml and .env. Files that exist stay as they are.
# Usage: sh init.sh ADDRESS      the address that users type, such as https://git-proxy.example.com
set -eu
cd "$(dirname -- "$0")"

case "${1-}" in
http://?* | https://?*) address=${1%/} ;;
*)
  echo "init.sh: give the address that users type, such as: sh init.sh https://git-proxy.example.com" >&2
  exit 2
  ;;
esac
case "$address" in
*[!A-Za-z0-9.:/_~%\[\]-]*)
  echo "init.sh: the address $address has a character that is not allowed in it" >&2
  exit 2
  ;;
esac

random() { # BYTES
  head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

# The folder is closed to others. The files in it are not: containers of several users read them.
umask 022
mkdir -p secrets
chmod 700 secrets

# The value comes by standard input. A kill leaves no file or all of it.
put() { # NAME
  if [ -e "secrets/$1" ]; then
    cat >/dev/null
    return
  fi
  cat >"secrets/.new.$$"
  chmod 444 "secrets/.new.$$"
  mv "secrets/.new.$$" "secrets/$1"
  echo "made secrets/$1"
}
trap 'rm -f "secrets/.new.$$" ".new.$$"' EXIT

random 32 | put encryption.key
random 24 | put postgres.password
printf 'postgres://svc:%s@postgres/svc?sslmode=disable' "$(cat secrets/postgres.password)" | put database.dsn
random 10 | put cache.object_access_key_id
random 24 | put cache.object_secret_access_key
# Empty: not set.
put host.client_secret </dev/null

place() { # NAME: standard input becomes this file, unless it exists
  if [ -e "$1" ]; then
    cat >/dev/null
    return
  fi
  cat >".new.$$"
  mv ".new.$$" "$1"
  echo "made $1"
}
sed "s|ADDRESS|$address|" svc.example.yaml | place svc.yaml
place .env <env.example

echo "Keep a copy of secrets/encryption.key elsewhere. Without it nobody can read the stored credentials."
