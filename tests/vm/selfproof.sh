#!/usr/bin/env bash
# selfproof.sh BUILD RESULTS: the lane must report a case that fails, hangs, warns in the kernel log or crashes the kernel, each for
# what it is; a case after the crash counts as not finished.
set -u
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"
/usr/bin/python3 "$vm_dir/run.py" rdma --build "$1" --results "$2" --case selfproof/fail=10 --case selfproof/warning=10 \
  --case selfproof/hang=5 --case selfproof/oops=10 --case rdma/environment=30
bad=0
expect() {
  local got
  got=$(cat "$2/selfproof__$1.rc" 2>/dev/null || cat "$2/$1.rc")
  [ "$got" = "$3" ] && echo "ok: $1 is reported as $3" && return
  echo "wrong: $1 is reported as $got, not $3"
  bad=1
}
expect fail "$2" 3
expect warning "$2" 126
expect hang "$2" 124
expect oops "$2" 125
expect rdma__environment "$2" 125
grep -q "Kernel panic" "$2/selfproof__oops.log" || bad=1
exit "$bad"
