#!/bin/bash
# The whole guest stands still for longer than a lease's TTL. Its monotonic clock stands still with it: the lease is there afterwards and
# ends in its own time; no session is lost.
set -eu
. "$UBD_VM/guest/case-lib.sh"
start_daemon /tmp/paused "$(small_config 4)"
"$ubctl" --runtime-dir /tmp/paused lease hold 2MiB --ttl 15s >/tmp/paused/hold 2>&1 &
holder=$!
"$ubctl" --runtime-dir /tmp/paused lease hold 2MiB >/tmp/paused/hold2 2>&1 &
keeper=$!
count() { "$ubctl" --runtime-dir /tmp/paused --json leases | jq '.leases | length'; }
while [ "$(count)" != 2 ]; do sleep 0.2; done
# The host stops the machine for 20 s when it reads this line.
echo "UBD-GUEST: pause 20" >/dev/console
sleep 2
test "$(count)" = 2 || fail "leases were lost over the pause: $(count) left"
rc=0
wait "$holder" || rc=$?
test "$rc" = 1 || fail "the lease with a TTL ended with $rc"
test "$(count)" = 1 || fail "the other lease is gone"
kill "$keeper"
wait "$keeper" || fail "the keeper ended with $?"
stop_daemon
