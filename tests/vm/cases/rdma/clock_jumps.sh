#!/bin/bash
# The wall clock jumps forward and back: a lease with a TTL ends after its time on the monotonic clock, and what is left never shows negative.
set -eu
. "$UBD_VM/guest/case-lib.sh"
uptime_s() { cut -d. -f1 /proc/uptime; }
start_daemon /tmp/clock "$(small_config 4)"
"$ubctl" --runtime-dir /tmp/clock lease hold 2MiB --ttl 20s >/tmp/clock/hold 2>&1 &
holder=$!
leases() { "$ubctl" --runtime-dir /tmp/clock --json leases; }
while [ "$(leases | jq '.leases | length')" != 1 ]; do sleep 0.2; done
began=$(uptime_s)
date -s '+2 hours' >/dev/null
test "$(leases | jq '.leases | length')" = 1 || fail "the jump forward ended the lease"
date -s '-4 hours' >/dev/null
test "$(leases | jq '.leases[0].ttl_left_ns >= 0 and .leases[0].ttl_left_ns <= 20000000000')" = true || fail "time left is off: $(leases)"
rc=0
wait "$holder" || rc=$?
took=$(($(uptime_s) - began))
cat /tmp/clock/hold
test "$rc" = 1 || fail "the holder ended with $rc"
echo "expired after $took s"
test "$took" -ge 15 -a "$took" -le 25 || fail "expired after $took s of monotonic time"
stop_daemon
