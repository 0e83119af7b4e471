#!/bin/sh
# Clones a repository through svc by its seed: a pack with its indexes that git takes as they are, so that this machine does not
# index it. The rest comes by a plain fetch. Needs git, curl, and openssl, sha256sum or shasum.
#
#   svc-seed [OPTIONS] URL [DIR]                        instead of git clone
#   svc-seed --into DIR [--origin-url URL] URL          before the check-out step of a CI job
#
# Any fault, and any option of git clone that is not below, means a plain git clone with the same arguments.
set -u

usage() {
  cat <<'END'
Usage: svc-seed [OPTIONS] URL [DIR]
       svc-seed --into DIR [--origin-url URL] URL

Clones a repository through svc by its seed, without indexing a pack on this machine.

  -b, --branch NAME    Check out this branch instead of the one of HEAD.
  -n, --no-checkout    Check out nothing.
      --bare           Make a bare repository.
  -q, --quiet          Show no progress.
      --progress       Show progress also without a terminal.
      --into DIR       Only bring the objects into DIR, before the check-out step of a CI job.
      --origin-url URL With --into: the URL of origin in this step (default URL without its password).
  -h, --help           Show this help.

With any other option of git clone, git clone does all the work. If the command was interrupted, run it again: it goes on
where it stopped. SVC_SEED_PARTS is the number of parallel downloads, 1 to 16 (default 4). With --into, SVC_SEED_TOKEN is the
token of a URL that has none: arguments are visible to other users of the machine.
END
}

# Refs of the seed while the rest is fetched. With --into they stay: CI steps delete branches and tags only.
REFS=refs/svc-seed
BRANCHES='+refs/heads/*:refs/remotes/origin/*'
# Most of these refs. Tips beyond are fetched again if they are needed.
MAX_TIPS=2000
# A pack from this size on is downloaded in parts.
PARTED_BYTES=33554432
# Tries of one download without any progress.
TRIES=5
# Most bytes of the description of a seed.
MAX_MANIFEST=268435456

all_known=yes
url='' dir='' into='' origin_url='' branch='' bare='' checkout=yes quiet='' progress=''
jobs='' ticker='' asking='' working='' filled=''
newline='
'
parts=${SVC_SEED_PARTS:-4}
[ ! -t 2 ] || progress=yes

# The name by which this script was called: also `svc clone`.
called=${0##*/} called=${called%.sh}
case $called in svc*) ;; *) called=svc-seed ;; esac
say() { printf '%s: %s\n' "$called" "$*" >&2; }
note() { [ -n "$quiet" ] || say "$@"; }
misused() { say "$@"; exit 2; }

# read_arguments ARG ...: sets the variables above. all_known is empty if an option is not ours.
read_arguments() {
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) usage; exit 0 ;;
      -q | --quiet) quiet=yes progress='' ;;
      --progress) progress=yes ;;
      -n | --no-checkout) checkout='' ;;
      --bare) bare=yes checkout='' ;;
      -b | --branch | --into | --origin-url)
        if [ $# -lt 2 ]; then
          case $1 in --into | --origin-url) misused "$1 needs a value" ;; esac
          all_known=''
          return
        fi
        set_value "$1" "$2"
        shift
        ;;
      --branch=* | --into=* | --origin-url=*) set_value "${1%%=*}" "${1#*=}" ;;
      --) shift; break ;;
      -*) all_known=''; return ;;
      *) add_operand "$1" ;;
    esac
    shift
  done
  for operand; do add_operand "$operand"; done
}

set_value() {
  case $1 in
    -b | --branch) branch=$2; [ -n "$2" ] || all_known='' ;;
    --into) into=$2 ;;
    --origin-url) origin_url=$2 ;;
  esac
}

add_operand() {
  if [ -z "$1" ]; then all_known=''
  elif [ -z "$url" ]; then url=$1
  elif [ -z "$dir" ]; then dir=$1
  else all_known=''
  fi
}

# Folder that git clone would make.
default_dir() {
  name=${url%/}
  name=${name%.git}
  name=${name##*/}
  [ -z "$bare" ] || name=$name.git
  printf '%s' "$name"
}

# --- Requests -------------------------------------------------------------------------------------------------------------

# Text for a value in double quotes in a configuration of curl.
quoted() { printf '%s' "$1" | sed 's/[\\"]/\\&/g'; }

# Settings of git for this address that a request needs too, as a configuration of curl.
git_settings() {
  git config --get-urlmatch http "$address" 2>/dev/null | while read -r name value; do
    case $name in
      http.proxy) printf 'proxy = "%s"\n' "$(quoted "$value")" ;;
      http.sslcainfo) printf 'cacert = "%s"\n' "$(quoted "$value")" ;;
      http.extraheader) printf 'header = "%s"\n' "$(quoted "$value")" ;;
      http.sslverify) case $value in false | no | off | 0) echo insecure ;; esac ;;
    esac
  done
  [ -z "${GIT_SSL_CAINFO:-}" ] || printf 'cacert = "%s"\n' "$(quoted "$GIT_SSL_CAINFO")"
  [ -z "${GIT_SSL_NO_VERIFY:-}" ] || echo insecure
}

# Limits what a process may write to a file, to end a response that does not end. A block has 512 bytes, in some shells 1024.
limit_files() {
  trap '' XFSZ
  ulimit -S -f $(($1 / 512 + 128))
}

# ended: waits for the process that was just started. Until then a signal to the script ends that process, too.
ended() {
  working=yes
  wait "$!"
  outcome=$?
  working=''
  return "$outcome"
}

# Status of the response whose header is in this file, or 000.
status_of() {
  found=$(sed -n 's,^HTTP/[0-9.]* \([0-9][0-9][0-9]\).*,\1,p' "$1" 2>/dev/null | tail -n 1)
  printf '%s' "${found:-000}"
}

# get PATH FILE BYTES [RANGE]: one request for a response of so many bytes at most. The header is in FILE.head and the status in $code,
# 000 without a response. Follows no redirect. The credential is only in the standard input of curl: other users of this machine can
# read its arguments.
get() {
  rm -f "$2" "$2.head"
  {
    printf '%s' "$credential_setting"
    printf '%s\n' "$settings"
    printf 'url = "%s"\noutput = "%s"\n' "$(quoted "$address$1")" "$(quoted "$2")"
    printf 'dump-header = "%s"\n' "$(quoted "$2.head")"
    [ -z "${4:-}" ] || printf 'range = "%s"\n' "$4"
    # Like git, which takes a credential of ~/.netrc before it asks.
    [ -n "$credential_setting" ] || echo netrc-optional
    printf 'silent\ngloboff\nconnect-timeout = 20\nspeed-limit = 1\nspeed-time = 60\nproto = "=http,https"\n'
    printf 'user-agent = "svc-seed/1"\n'
  } | { limit_files "$3"; exec curl -q --config -; } >/dev/null 2>&1 &
  ended
  outcome=$?
  code=$(status_of "$2.head")
  return "$outcome"
}

# Asks git for a credential as git clone would, by its helpers or a prompt.
fill_credential() {
  [ -n "$filled" ] && return 1
  filled=$(printf 'url=%s\n\n' "$plain_url" | git credential fill) || { filled=''; return 1; }
  user=$(printf '%s\n' "$filled" | sed -n 's/^username=//p')
  password=$(printf '%s\n' "$filled" | sed -n 's/^password=//p')
  # For the helper below. Only this user can read the environment.
  export SVC_SEED_USER="$user" SVC_SEED_PASSWORD="$password"
  use_credential
}

use_credential() {
  credential_setting=$(printf 'user = "%s:%s"\nbasic\n.' "$(quoted "$user")" "$(quoted "$password")")
  credential_setting=${credential_setting%.}
}

# tell_credential approve|reject: what git does after a response.
tell_credential() {
  [ -z "$filled" ] || printf '%s\n\n' "$filled" | git credential "$1" 2>/dev/null
}

# decoded TEXT: without %XX.
decoded() { printf '%b' "$(printf '%s' "$1" | sed 's/\\/\\\\/g; s/%\([0-9A-Fa-f][0-9A-Fa-f]\)/\\0\1/g' | hex_to_octal)"; }

# \0XX with hexadecimal digits to \0OOO: printf of POSIX knows octal only.
hex_to_octal() {
  awk '{
    out = ""
    while ((at = match($0, /\\0[0-9A-Fa-f][0-9A-Fa-f]/)) > 0) {
      high = index("0123456789abcdef", tolower(substr($0, at + 2, 1))) - 1
      low = index("0123456789abcdef", tolower(substr($0, at + 3, 1))) - 1
      out = out substr($0, 1, at - 1) sprintf("\\0%03o", high * 16 + low)
      $0 = substr($0, at + 4)
    }
    printf "%s", out $0
  }'
}

# Splits the URL, as url.*.insteadOf changes it, into the address without a credential, and the credential.
read_url() {
  used=$(git ls-remote --get-url "$url")
  scheme=${used%%://*}
  rest=${used#*://}
  authority=${rest%%/*}
  path=${rest#"$authority"}
  plain_url=$scheme://${authority##*@}$path
  path=${path%/}
  address=$scheme://${authority##*@}${path%.git}.git
  credential_setting='' filled=''
  case $authority in
    *@*)
      user=${authority%@*}
      case $user in
        *:*)
          password=$(decoded "${user#*:}")
          user=$(decoded "${user%%:*}")
          use_credential
          ;;
        *) plain_url=$scheme://$authority$path ;;
      esac
      ;;
  esac
  if [ -n "$into" ] && [ -z "$credential_setting" ] && [ -n "${SVC_SEED_TOKEN:-}" ]; then
    user=x password=$SVC_SEED_TOKEN
    use_credential
  fi
  settings=$(git_settings)
}

# The URL as it was given, without a password: where a configuration stays.
without_password() { printf '%s' "$url" | sed 's|^\(https\{0,1\}://\)[^/]*:[^/]*@|\1|'; }

# --- Manifest -------------------------------------------------------------------------------------------------------------

# field KEY: a text of the manifest. null is empty.
field() { sed -n "s/^  \"$1\": \"\(.*\)\",\$/\1/p" "$manifest"; }
# Descriptions of the files as assignments: pack_file, pack_size, pack_sha256, and so for each. The values have no other letters.
file_fields() {
  sed -n 's/^  "\([a-z_]*\)": {"name":"\(pack-[0-9a-f]*\.[a-z]*\)","size":\([1-9][0-9]\{0,14\}\),"sha256":"\([0-9a-f]*\)".*/\1_file=\2 \1_size=\3 \1_sha256=\4/p' "$manifest"
}
tips() { sed -n "/^  \"tips\": \\[\$/,\$s/^    \"\\([0-9a-f]*\\)\",\\{0,1\\}\$/\\1/p" "$manifest"; }

# Why the manifest did not come, where possible in the words of the service.
refusal() {
  detail=$(head -c 4096 "$manifest" 2>/dev/null | tr -d '[:cntrl:]' | sed -n 's/.*"detail": *"\([^"\\]*\)".*/\1/p')
  if [ "$code" = 404 ] && grep -qi '^retry-after:' "$manifest.head"; then echo "there is no seed of this repository yet"
  elif [ -n "$detail" ]; then printf '%s\n' "$detail"
  elif [ "$code" = 404 ]; then echo "this server has no seed of this repository"
  else echo "the service answered with $code"
  fi
}

# Reads the manifest. @returns 1 with the reason in $why
read_manifest() {
  get /svc/seed "$manifest" "$MAX_MANIFEST"
  got=$?
  if [ "$code" = 401 ] && [ -z "$credential_setting" ] && fill_credential; then
    get /svc/seed "$manifest" "$MAX_MANIFEST"
    got=$?
    case $code in
      401) tell_credential reject ;;
      # 404 is the response to a credential that is right, too.
      200 | 404) tell_credential approve ;;
    esac
  fi
  case $code in
    200) [ "$got" -eq 0 ] || { why="the description of the seed did not come to its end"; return 1; } ;;
    000) why="no response from $scheme://${authority##*@}"; return 1 ;;
    3??) why="the service answered with a redirect"; return 1 ;;
    *) why=$(refusal); return 1 ;;
  esac
  format=$(field object_format)
  case $format in
    sha1) oid_bytes=20 ;;
    sha256) oid_bytes=32 ;;
    *) why="the description of the seed cannot be read"; return 1 ;;
  esac
  pack_file='' pack_size='' idx_file='' rev_file='' commit_graph_file=''
  eval "$(file_fields)"
  pack_name=${pack_file%.pack}
  if [ -z "$pack_name" ] || [ -z "$pack_size" ] || [ "$idx_file" != "$pack_name.idx" ] || [ "$rev_file" != "$pack_name.rev" ] ||
    [ "$commit_graph_file" != "$pack_name.graph" ]; then
    why="the description of the seed cannot be read"
    return 1
  fi
}

# --- Download -------------------------------------------------------------------------------------------------------------

size_of() { if [ -f "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi; }

# keep_range FILE FIRST LAST NEW: appends the response in NEW to FILE, which gets the bytes FIRST to LAST of a file of the seed.
# @returns 1 if they are not the bytes that come next, or if another run has taken over
keep_range() {
  next=$(($2 + $(size_of "$1")))
  came=$(size_of "$4")
  begin=$(tr 'A-Z\r' 'a-z ' <"$4.head" | sed -n 's/^content-range: *bytes \([0-9]*\)-.*/\1/p')
  if [ "$(status_of "$4.head")" != 206 ] || [ "$begin" != "$next" ] || [ $((next + came - 1)) -gt "$3" ]; then return 1; fi
  if ! kill -0 $$ || [ "$(cat "$work/owner")" != $$ ]; then return 1; fi
  if [ -e "$1" ]; then cat "$4" >>"$1"; elif [ -e "$4" ]; then mv "$4" "$1"; fi
} 2>/dev/null

# fetch_range NAME FILE FIRST LAST: bytes FIRST to LAST of a file of the seed, appended to what FILE has of them. A status that ends the
# work is written to $work/stop.
fetch_range() {
  trap 'if [ -n "$working" ]; then kill "$!"; wait "$!"; fi 2>/dev/null; exit 1' TERM
  # Of a run that was interrupted. Its curl may still write: the file is copied, and that curl keeps one without a name.
  for old in "$2".new.*.head; do
    old=${old%.head}
    if [ -s "$old" ]; then cp "$old" "$2.old" && mv "$old.head" "$2.old.head" && keep_range "$2" "$3" "$4" "$2.old"; fi
    rm -f "$old" "$old.head" "$2.old" "$2.old.head"
  done
  new=$2.new.$$
  left=$TRIES
  while :; do
    have=$(size_of "$2")
    first=$(($3 + have))
    [ "$first" -le "$4" ] || return 0
    if [ -e "$work/stop" ] || [ "$left" -eq 0 ]; then return 1; fi
    if [ "$left" -ne "$TRIES" ]; then
      sleep $((TRIES - left)) &
      ended
    fi
    get "/svc/seed/$1" "$new" $(($4 - first + 1)) "$first-$4"
    case $code in
      206)
        now=$(size_of "$new")
        keep_range "$2" "$3" "$4" "$new" || { printf range >"$work/stop"; return 1; }
        # Some bytes are progress.
        if [ "$now" -gt 0 ]; then left=$TRIES; else left=$((left - 1)); fi
        ;;
      000 | 429 | 5??) left=$((left - 1)) ;;
      *) printf '%s' "$code" >"$work/stop"; return 1 ;;
    esac
    rm -f "$new" "$new.head"
  done
}

# Brings one file of the seed to $work. Large ones in parts, next to each other.
fetch_file() {
  eval "name=\$$1_file size=\$$1_size"
  target=$work/$1
  [ "$(size_of "$target")" -ne "$size" ] || [ ! -e "$target.whole" ] || return 0
  count=1
  [ "$size" -lt "$PARTED_BYTES" ] || count=$parts
  step=$(((size + count - 1) / count))
  at=0
  jobs=''
  while [ "$at" -lt "$count" ]; do
    first=$((at * step))
    last=$((first + step - 1))
    [ "$last" -lt "$size" ] || last=$((size - 1))
    fetch_range "$name" "$target.$at-of-$count" "$first" "$last" &
    jobs="$jobs $!"
    at=$((at + 1))
  done
  outcome=0
  for job in $jobs; do wait "$job" || outcome=1; done
  jobs=''
  if [ "$outcome" -ne 0 ]; then
    case $(cat "$work/stop" 2>/dev/null) in
      410) why="the seed was withdrawn" ;;
      40[134]) why="the service does not give the seed any more" ;;
      '') why="the download of $name did not go on" ;;
      range) why="the service sent other bytes than it was asked for" ;;
      *) why="the service answered with $(cat "$work/stop")" ;;
    esac
    return 1
  fi
  mv "$target.0-of-$count" "$target" || { why="cannot write to $work"; return 1; }
  at=1
  while [ "$at" -lt "$count" ]; do
    cat "$target.$at-of-$count" >>"$target" && rm -f "$target.$at-of-$count" || { why="cannot write to $work"; return 1; }
    at=$((at + 1))
  done
  : >"$target.whole"
}

# Shows how much of the pack is here, until it is ended.
show_progress() {
  trap 'kill "$!" 2>/dev/null; exit' TERM
  total=$pack_size
  while :; do
    have=0
    for part in "$work"/pack*; do
      case $part in *.whole | *.head) ;; *) have=$((have + $(size_of "$part"))) ;; esac
    done
    printf '\rReceiving seed: %3d%% (%d/%d MB)' $((have * 100 / (total + 1))) $((have / 1000000)) $((total / 1000000)) >&2
    sleep 1 &
    wait "$!"
  done
}

# sum_sha256 FILE: sets $sum. A signal ends the program, which takes seconds for a large file.
# openssl first: it uses the instructions of the processor for SHA-256, and takes a fifth of the time of sha256sum.
sum_sha256() {
  if command -v openssl >/dev/null 2>&1; then exec openssl dgst -sha256 -r
  elif command -v sha256sum >/dev/null 2>&1; then exec sha256sum
  else exec shasum -a 256
  fi <"$1" >"$work/sum" &
  ended
  sum=$(cut -d ' ' -f 1 "$work/sum")
}

# hex_at FILE FROM_END: as many bytes as an object id has, which begin so many bytes before the end.
hex_at() { tail -c "$2" "$1" | dd bs=1 count=$oid_bytes 2>/dev/null | od -An -v -tx1 | tr -d ' \n'; }

check_files() {
  for key in pack idx rev commit_graph; do
    eval "name=\$${key}_file sha256=\$${key}_sha256"
    sum_sha256 "$work/$key"
    if [ "$sum" != "$sha256" ]; then
      rm -f "$work/$key" "$work/$key.whole"
      why="$name is damaged: its SHA-256 is another one"
      return 1
    fi
  done
  # The index has the checksum of its pack before its own.
  if [ "$(hex_at "$work/pack" $oid_bytes)" != "$(hex_at "$work/idx" $((2 * oid_bytes)))" ]; then
    why="the index of the seed is of another pack"
    return 1
  fi
}

# Puts the files where git reads them, the index last: with it, the pack counts.
place_files() {
  why="cannot write to $objects"
  mkdir -p "$objects/pack" "$objects/info" || return 1
  to=$objects/pack/$pack_name
  if [ "$(git config --bool transfer.fsckObjects)" = true ] || [ "$(git config --bool fetch.fsckObjects)" = true ]; then
    # Only an index that is made here has looked into the objects.
    in_repo index-pack --strict -o "$work/own.idx" "$work/pack" >/dev/null &
    if ! ended; then
      why="git refuses an object of the seed"
      return 1
    fi
    mv -f "$work/own.idx" "$work/idx" && rm -f "$work/rev" "$work/own.rev" || return 1
  else
    chmod 444 "$work/rev" && mv -f "$work/rev" "$to.rev" || return 1
  fi
  chmod 444 "$work/pack" "$work/idx" "$work/commit_graph" || return 1
  mv -f "$work/pack" "$to.pack" && mv -f "$work/commit_graph" "$objects/info/commit-graph" && mv -f "$work/idx" "$to.idx"
}

# --- The repository -------------------------------------------------------------------------------------------------------

# Without the warning that a branch or tag has the name HEAD, which git clone does not print either.
in_repo() { git -c core.warnAmbiguousRefs=false "--git-dir=$git_dir" "$@"; }

# A helper in place of git's own: these were asked already, and who typed a password is not asked again.
HELPER='!f() { [ "$1" != get ] || printf "username=%s\npassword=%s\n" "$SVC_SEED_USER" "$SVC_SEED_PASSWORD"; }; f'
# start_git ARG ...: starts git next to the script, with the credential that was typed or found. Another host does not get it.
start_git() {
  if [ -n "$filled" ]; then
    set -- -c "credential.$scheme://${authority##*@}.helper=" -c "credential.$scheme://${authority##*@}.helper=$HELPER" "$@"
  fi
  git "$@" &
}

# Makes the repository, or takes one that an earlier run has begun for the same URL.
prepare() {
  why="cannot make the repository in $dir"
  if [ "$(cat "$work/url" 2>/dev/null)" != "$plain_url" ]; then
    if [ -n "$bare" ]; then git init -q --bare "--object-format=$format" "$dir"
    else git init -q "--object-format=$format" "$dir"
    fi >/dev/null || return 1
    mkdir -p "$work" && printf '%s' "$plain_url" >"$work/url" || return 1
  fi
  rm -f "$work/stop"
  # An earlier run that still lives, or a part of it, stops.
  echo $$ >"$work/owner" || return 1
  # Of another seed are only its parts.
  if [ "$(cat "$work/name" 2>/dev/null)" != "$pack_name" ]; then
    for key in pack idx rev commit_graph; do rm -f "$work/$key" "$work/$key".*; done
    printf '%s' "$pack_name" >"$work/name" || return 1
  fi
}

# A commit for HEAD: check-out steps clear a folder whose HEAD names nothing. The step then changes only what is newer.
detach_head() {
  ref=$(field head)
  line=$(printf '    "%s": "' "${ref:-HEAD}")
  oid=$(awk -v line="$line" 'index($0, line) == 1 { oid = substr($0, length(line) + 1); sub(/".*/, "", oid); print oid; exit }' "$manifest")
  [ -z "$oid" ] || in_repo update-ref --no-deref HEAD "$oid"
}

add_seed_refs() {
  why="git does not take the refs of the seed"
  remove_seed_refs || return 1
  tips | head -n $MAX_TIPS | awk -v refs="$REFS" '{ print "create " refs "/" NR " " $1 }' | in_repo update-ref --stdin
}

remove_seed_refs() {
  in_repo for-each-ref "--format=delete %(refname)" "$REFS" | in_repo update-ref --stdin || return 1
  rm -rf "${git_dir:?}/$REFS"
}

take_seed() {
  prepare || return 1
  # The server's refs, which can be newer than the seed. This needs no object, and so runs during the download.
  if [ -z "$into" ]; then
    start_git ls-remote --symref "$url" >"$work/remote" 2>/dev/null
    asking=$!
  fi
  # An earlier run came as far as this.
  if [ ! -e "$objects/pack/$pack_name.idx" ]; then
    download && check_files && place_files || return 1
  fi
  [ -z "$into" ] || add_seed_refs
}

download() {
  if [ -n "$progress" ]; then
    show_progress &
    ticker=$!
  fi
  complete=yes
  for key in idx rev commit_graph pack; do
    fetch_file $key || { complete=''; break; }
  done
  if [ -n "$ticker" ]; then
    { kill "$ticker"; wait "$ticker"; } 2>/dev/null
    ticker=''
    [ -z "$complete" ] || printf '\rReceiving seed: 100%%                         ' >&2
    echo >&2
  fi
  [ -n "$complete" ]
}

# set_origin URL [REFSPEC]: the settings of the remote, where git clone writes them.
set_origin() {
  in_repo config remote.origin.url "$1" || return 1
  [ $# -eq 1 ] || in_repo config remote.origin.fetch "$2" || return 1
  # git clone learns the object format from the server after it has written the remote.
  [ "$format" != sha1 ] || return 0
  cp "$git_dir/config" "$work/config" &&
    git config --file "$work/config" --unset extensions.objectformat &&
    git config --file "$work/config" extensions.objectformat "$format" &&
    mv -f "$work/config" "$git_dir/config"
}

# The server's branches and tags as OID, name here, and for an annotated tag OID of its object. Unusual names are left to git fetch.
remote_refs() {
  LC_ALL=C awk -F '\t' -v heads="$heads/" '
    function flush() { if (name != "") print oid, name, peeled; name = peeled = "" }
    /^ref: / { next }
    $2 == given "^{}" { peeled = $1; next }
    {
      flush()
      oid = $1
      given = $2
      if (index($2, "refs/heads/") == 1) name = heads substr($2, 12)
      else if (index($2, "refs/tags/") == 1) name = $2
      if (name ~ /[ ~^:?*[\\]|\.\.|@\{|\/\/|\/\.|\.lock(\/|$)|[\/.]$/) name = ""
    }
    END { flush() }' "$work/remote"
}

# Writes the refs whose objects are in the seed, in the form in which git clone leaves them. git fetch would make a file of each.
write_refs() {
  remote_refs >"$work/refs"
  in_repo cat-file --buffer '--batch-check=%(objectname) %(rest)' <"$work/refs" |
    LC_ALL=C awk '$2 != "missing" { print $2, $1, $3 }' | LC_ALL=C sort >"$work/refs-here"
  {
    echo '# pack-refs with: peeled fully-peeled sorted '
    awk '{ print $2, $1; if ($3 != "") print "^" $3 }' "$work/refs-here"
  } >"$git_dir/packed-refs"
  # The fetch then asks only for what is newer.
  [ "$(wc -l <"$work/refs")" -eq "$(wc -l <"$work/refs-here")" ] || add_seed_refs
}

# What the fetch of git clone does, and the settings that it leaves.
fetch_rest() {
  why="git ls-remote failed"
  wait "$asking" || return 1
  asking=''
  head_branch=$(sed -n 's,^ref: refs/heads/\(.*\)	HEAD$,\1,p' "$work/remote")
  head_oid=$(sed -n 's/^\([0-9a-f]*\)	HEAD$/\1/p' "$work/remote")
  why="git fetch failed"
  heads=refs/remotes/origin
  [ -z "$bare" ] || heads=refs/heads
  set -- "$url"
  [ -n "$bare" ] || set -- "$url" "$BRANCHES"
  set_origin "$@" || return 1
  write_refs || return 1
  settings='-c gc.auto=0 -c maintenance.auto=false -c fetch.writeCommitGraph=false -c core.logAllRefUpdates=false'
  shown=-q
  [ -z "$progress" ] || shown=--progress
  # shellcheck disable=SC2086
  start_git "--git-dir=$git_dir" $settings fetch $shown --no-write-fetch-head --no-tags origin "+refs/heads/*:$heads/*" '+refs/tags/*:refs/tags/*'
  ended && remove_seed_refs || return 1
  [ -z "$(find "$git_dir/refs" -type f)" ] || in_repo pack-refs --all
}

# Sets HEAD and its branch, as git clone does.
set_head() {
  why="cannot set HEAD"
  message="clone: from $plain_url"
  wanted=${branch:-$head_branch} oid=$head_oid
  if [ -n "$wanted" ] && ! oid=$(in_repo rev-parse -q --verify "$heads/$wanted^0"); then
    # A tag, or a fault that git says better.
    oid=$(in_repo rev-parse -q --verify "refs/tags/$wanted^0") || { why="there is no branch or tag $wanted"; return 1; }
    wanted=''
  fi
  if [ -n "$bare" ]; then
    if [ -n "$wanted" ]; then in_repo symbolic-ref HEAD "refs/heads/$wanted"
    else in_repo update-ref --no-deref -m "$message" HEAD "$oid"
    fi
    return
  fi
  if [ -n "$head_branch" ] && in_repo rev-parse -q --verify "$heads/$head_branch" >/dev/null; then
    in_repo symbolic-ref -m "$message" $heads/HEAD "$heads/$head_branch" || return 1
  fi
  if [ -z "$wanted" ]; then
    [ -z "$oid" ] || in_repo update-ref --no-deref -m "$message" HEAD "$oid"
    return
  fi
  in_repo symbolic-ref HEAD "refs/heads/$wanted" &&
    in_repo update-ref -m "$message" HEAD "$oid" &&
    in_repo config "branch.$wanted.remote" origin &&
    in_repo config "branch.$wanted.merge" "refs/heads/$wanted"
}

# Tells how to leave a HEAD without a branch, as git clone does, also with --quiet.
advise_detached() {
  [ "$(git -C "$dir" config --type=bool advice.detachedHead)" != false ] || return 0
  cat >&2 <<END
Note: switching to '$oid'.

You are in 'detached HEAD' state. You can look around, make experimental
changes and commit them, and you can discard any commits you make in this
state without impacting any branches by switching back to a branch.

If you want to create a new branch to retain commits you create, you may
do so (now or later) by using -c with the switch command. Example:

  git switch -c <new-branch-name>

Or undo this operation with:

  git switch -

Turn off this advice by setting config variable advice.detachedHead to false

END
}

finish() {
  fetch_rest && set_head || return 1
  rm -rf "$work"
  state="Run git checkout -f in $dir to go on"
  unset SVC_SEED_USER SVC_SEED_PASSWORD
  if [ -n "$checkout" ] && [ -n "$oid" ]; then
    [ -n "$wanted" ] || advise_detached
    # Without a name: a branch may have the name HEAD.
    git -C "$dir" -c core.warnAmbiguousRefs=false checkout -q ${progress:+--progress} -f &
    ended || exit
  fi
}

# interrupted STATUS: ends what runs next to the script, which the signals of a terminal do not reach, and waits for it.
interrupted() {
  trap '' INT TERM HUP
  {
    for job in $jobs $ticker $asking ${working:+"$!"}; do kill "$job"; done
    wait
  } 2>/dev/null
  say "interrupted. $state"
  exit "$1"
}

on_signals() {
  state='Run the same command again to go on'
  trap 'rm -rf "$scratch"' EXIT
  trap 'interrupted 129' HUP
  trap 'interrupted 130' INT
  trap 'interrupted 143' TERM
}

# A run that was started later has taken over, and uses the folder.
leave_to_other() {
  if [ -e "$work/url" ] && [ "$(cat "$work/owner" 2>/dev/null)" != $$ ]; then misused "another svc-seed works in $dir"; fi
}

# --- Main -----------------------------------------------------------------------------------------------------------------

# plain ARG ...: git clone with all arguments unchanged. Its exit status is that of this command.
plain() {
  if [ -n "$why" ]; then say "$why: cloning without the seed"; fi
  if [ -z "$filled" ]; then exec git clone "$@"; fi
  start_git clone "$@"
  ended
  exit
}

# Objects for a check-out step that comes later. It can do without.
into_folder() {
  dir=$into
  git_dir=$dir/.git objects=$dir/.git/objects work=$dir/.git/svc-seed
  scratch=$(mktemp -d) || exit 0
  manifest=$scratch/manifest
  on_signals
  if [ -e "$git_dir" ] && [ ! -e "$work/url" ]; then
    note "$dir is a repository already"
    exit 0
  fi
  if read_url && read_manifest && take_seed && detach_head && set_origin "${origin_url:-$(without_password)}" "$BRANCHES"; then
    rm -rf "$work"
    objects_brought=$(sed -n 's/^  "pack": .*"objects":\([0-9]*\).*/\1/p' "$manifest")
    note "brought ${objects_brought:-the} objects of the seed of $(field made_at) ($((pack_size / 1000000)) MB) into $dir"
    exit 0
  fi
  say "$why: the next step fetches without the seed"
  leave_to_other
  # The step would find a repository that is not its own.
  [ ! -e "$work/url" ] || rm -rf "$git_dir"
  exit 0
}

why=''
read_arguments "$@"
command -v git >/dev/null 2>&1 || { say "there is no git in PATH"; exit 127; }
case $parts in [1-9] | 1[0-6]) ;; *) misused "SVC_SEED_PARTS is a number from 1 to 16" ;; esac
if [ -n "$into" ]; then
  if [ -z "$all_known" ] || [ -z "$url" ] || [ -n "$dir$branch$bare" ]; then
    misused "--into takes a URL, and of the options only --origin-url, --quiet and --progress"
  fi
  case $url in http://* | https://*) ;; *) misused "$url: the URL of a repository begins with https:// or http://" ;; esac
  into_folder
fi
[ -z "$origin_url" ] || misused "--origin-url is only for --into"
case $url in
  http://?*/?* | https://?*/?*) ;;
  *) all_known='' ;;
esac
case $url$dir in *"$newline"*) all_known='' ;; esac
# Settings by which git clone makes another repository than this script.
if [ -n "${GIT_DIR:-}${GIT_WORK_TREE:-}" ] || git config clone.defaultRemoteName >/dev/null; then all_known=''; fi
[ -n "$all_known" ] || plain "$@"
command -v curl >/dev/null 2>&1 || { why="there is no curl"; plain "$@"; }
[ -n "$dir" ] || dir=$(default_dir)
case $dir in -*) dir=./$dir ;; esac
if [ -n "$bare" ]; then git_dir=$dir; else git_dir=$dir/.git; fi
objects=$git_dir/objects work=$git_dir/svc-seed
# git says it best. After an interruption nothing but .git is there.
there=$(ls -A "$dir" 2>/dev/null)
if [ -n "$there" ] && { [ ! -e "$work/url" ] || { [ -z "$bare" ] && [ "$there" != .git ]; }; }; then plain "$@"; fi
was_there=''
[ ! -d "$dir" ] || [ -e "$work/url" ] || was_there=yes
scratch=$(mktemp -d) || plain "$@"
manifest=$scratch/manifest
on_signals
[ -n "$quiet" ] || printf "Cloning into '%s' by its seed...\n" "$dir" >&2
read_url
if read_manifest && take_seed && finish; then exit 0; fi
leave_to_other
rm -rf "$scratch"
# git clone wants a folder that is empty or not there.
if [ -e "$work/url" ] || [ -e "$git_dir/HEAD" ]; then
  if [ -n "$was_there" ]; then rm -rf "$git_dir"; else rm -rf "$dir"; fi
fi
state='git clone had begun'
[ -n "$filled" ] || trap - EXIT HUP INT TERM
plain "$@"
