#!/bin/sh
# Checks downloaded files of a release: the signature of SHA256SUMS, and the hash of each file.
# Usage: sh verify-release.sh [--signers FILE | --no-signature] [FILE ...]
# Without a FILE, it checks the files of SHA256SUMS that are in the folder. FILE of --signers has lines as
# "release ssh-ed25519 AAAA…": take it from a place that you trust, and not from where the release is.
set -u

fail() {
  printf 'verify-release: %s\n' "$*" >&2
  exit 1
}

signers= signed=yes
while [ $# -gt 0 ]; do
  case $1 in
    --signers)
      [ $# -ge 2 ] || fail "--signers needs a file"
      signers=$2
      shift 2
      ;;
    --no-signature) signed=no && shift ;;
    --help | -h)
      sed -n '2,5s/^# //p' "$0"
      exit 0
      ;;
    -*) fail "unknown option $1; see --help" ;;
    *) break ;;
  esac
done

[ -f SHA256SUMS ] || fail "there is no SHA256SUMS in this folder: download it from where the release is"
if [ "$signed" = yes ]; then
  [ -n "$signers" ] || fail "name the keys that you trust by --signers FILE, or leave the signature out by --no-signature"
  [ -r "$signers" ] || fail "cannot read the keys in $signers"
  [ -f SHA256SUMS.sig ] || fail "there is no SHA256SUMS.sig in this folder: this release is not signed, or the file was not downloaded"
  command -v ssh-keygen >/dev/null 2>&1 || fail "needs ssh-keygen of OpenSSH 8.1 or newer"
  said=$(ssh-keygen -Y verify -f "$signers" -I release -n release -s SHA256SUMS.sig <SHA256SUMS 2>&1) ||
    fail "the signature of SHA256SUMS is wrong: no key in $signers made it for this text. Do not use these files. ssh-keygen says: $said"
fi

if command -v sha256sum >/dev/null 2>&1; then
  hash_of() { sha256sum <"$1" | cut -d' ' -f1; }
else
  hash_of() { shasum -a 256 <"$1" | cut -d' ' -f1; }
fi

if [ $# -eq 0 ]; then
  while read -r _ name; do
    [ ! -f "$name" ] || set -- "$@" "$name"
  done <SHA256SUMS
  [ $# -gt 0 ] || fail "no file of SHA256SUMS is in this folder"
fi
for file in "$@"; do
  [ -f "$file" ] || fail "there is no file $file"
  expected=$(awk -v name="$(basename -- "$file")" '$2 == name { print $1 }' SHA256SUMS)
  [ -n "$expected" ] || fail "$file is not part of this release: SHA256SUMS does not name it"
  found=$(hash_of "$file") || fail "cannot read $file"
  [ "$found" = "$expected" ] ||
    fail "$file is broken: the download was cut off, or the file was changed (SHA-256 is $found, and should be $expected). Download it again"
  printf '%s: good\n' "$file"
done
