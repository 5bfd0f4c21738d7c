#!/bin/bash
# An ordinary user with 64 KiB of memlock: what must be locked is refused with limit, need and the unit's line; what may be locked runs unlocked and says so.
set -eu
. "$UBD_VM/guest/case-lib.sh"
as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups prlimit --memlock=65536:65536 "$@"; }
mkdir -m 700 /tmp/memlock && chown 65534:65534 /tmp/memlock
small_config 8 'lock_pages: REQUIRED' >/tmp/memlock/must
small_config 8 'lock_pages: IF_POSSIBLE' >/tmp/memlock/may
rc=0
as_user "$ubd" --config /tmp/memlock/must --runtime-dir /tmp/memlock >/tmp/memlock-out 2>&1 || rc=$?
cat /tmp/memlock-out
test "$rc" = 1 || fail "exit code $rc, not 1"
grep -q 'LimitMEMLOCK=infinity' /tmp/memlock-out || fail "the unit's line is not named"
grep -q '65536\|64KiB' /tmp/memlock-out || fail "the limit is not named"
setpriv --reuid 65534 --regid 65534 --clear-groups prlimit --memlock=65536:65536 "$ubd" --config /tmp/memlock/may \
  --runtime-dir /tmp/memlock >/tmp/memlock-log 2>&1 &
daemon=$!
while [ ! -S /tmp/memlock/ubd.sock ]; do test -d "/proc/$daemon" || { cat /tmp/memlock-log; fail "did not start"; }; sleep 0.2; done
as_user "$ubctl" --runtime-dir /tmp/memlock --json pools | jq -e '.pools[0].locked | startswith("no")'
stop_daemon
