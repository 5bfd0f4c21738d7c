#!/bin/bash
# quickstart.sh [FILE]: from a fresh clone to the main job in one command. Installs missing packages (the only use of sudo), builds ubd and
# ubctl in build/quick, starts a private ubd as the invoking user, runs `ubctl demo FILE`, stops the daemon, and exits with the
# demo's code. Without FILE it makes one that is larger than the pool (UBD_QUICKSTART_BYTES, default 600 MiB) and removes it again.
# Writes nothing but build/quick, a private runtime directory and that file.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/quick
log=$build/quickstart.log
file=${1:-}
private=
made_file=
daemon=

say() { echo "quickstart: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

# shellcheck disable=SC2317  # called by the trap
clean_up() {
  local code=$?
  trap '' INT TERM
  if [[ -n $daemon ]]; then
    kill -TERM "$daemon" 2>/dev/null || true
    local stopped=0
    wait "$daemon" || stopped=$?
    if ((stopped != 0)); then
      say "ubd ended with $stopped instead of 0"
      ((code != 0)) || code=1
    fi
  fi
  [[ -z $made_file ]] || rm -f "$made_file"
  [[ -z $private ]] || rm -rf "$private"
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

[[ $# -le 1 ]] || fail "usage: quickstart.sh [FILE]"
[[ -z $file || -r $file ]] || fail "cannot read $file"

"$root/packaging/install-packages.sh" build >&2
mkdir -p "$build"
say "building in build/quick"
(cd "$root" && cmake --preset quick) >"$log" 2>&1 ||
  { tail -n 20 "$log" >&2; fail "cmake failed; its output is in $log"; }
cmake --build "$build" --target ubd ubctl >>"$log" 2>&1 ||
  { grep -E -A 5 'error|FAILED' "$log" | head -n 40 >&2; fail "the build failed; its output is in $log"; }

if [[ -z $file ]]; then
  made_file=$(mktemp "$build/demo-XXXXXX.bin")
  file=$made_file
  bytes=${UBD_QUICKSTART_BYTES:-629145600}
  say "making a test file of $bytes bytes"
  head -c "$bytes" /dev/urandom >"$file" || fail "cannot write $file"
fi

private=$(mktemp -d "${TMPDIR:-/tmp}/ubd-quickstart-XXXXXX")
mkdir -m 0700 "$private/run"
mkfifo -m 0600 "$private/ready"
say "starting ubd (8 blocks of 64 MiB)"
"$build/bin/ubd" --runtime-dir "$private/run" --ready-fd 3 3>"$private/ready" &
daemon=$!
# ubd writes one line when it serves; when it dies instead, the pipe ends.
line=
read -r -t 120 line <"$private/ready" || fail "ubd did not become ready; its messages are above"
[[ $line == READY* ]] || fail "ubd said '$line' instead of READY"

code=0
"$build/bin/ubctl" --runtime-dir "$private/run" demo "$file" || code=$?
exit "$code"
