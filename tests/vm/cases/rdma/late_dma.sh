#!/bin/bash
# A read from a device that answers after four seconds; its client is killed meanwhile, or stopped, or its lease revoked. The next tenant, of another
# user, never sees the late bytes: the blocks stay out of use until the device is done, and come back with fresh backing.
set -eu
. "$UBD_VM/guest/case-lib.sh"
export DM_DISABLE_UDEV=1 # there is none here: the device nodes are made at once
actor=$UBD_BUILD/bin/transfer_once
modprobe dm-delay
size=$(blockdev --getsz /dev/vdb)
dd if=/dev/urandom of=/dev/vdb bs=1M count=8 conv=fsync status=none
echo "0 $size delay /dev/vdb 0 4000" | dmsetup create slow
chmod 0644 /dev/mapper/slow "$(readlink -f /dev/mapper/slow)"
mkdir -m 755 /tmp/late
start_daemon /tmp/late "$(small_config 4 'lock_pages: OFF') socket { group: \"users\" }"
export UB_RUNTIME_DIR=/tmp/late
as() { setpriv --reuid "$1" --regid "$1" --groups 100 "${@:2}"; } # "users"
state() { "$ubctl" --json leases | jq -r '[.leases[].state] | join(" ")'; }
pool() { "$ubctl" --json pools | jq -r ".pools[0].$1"; }
draining() { [ "$(state)" = draining ]; }
all_free() { [ "$(pool blocks_free)" = 4 ]; }
says() { grep -q "$2" "$1"; }

# begin_read: the whole pool, all of it in flight from here on.
begin_read() {
  rm -f /tmp/late/reader
  as 1001 "$actor" /tmp/late read /dev/mapper/slow 0 8388608 direct-only >/tmp/late/reader &
  reader=$!
  until_true says /tmp/late/reader submitted
  until_true in_flight
}
in_flight() { [ "$("$ubctl" --json leases | jq -r '.leases[0].in_flight // 0')" -gt 0 ]; }

# The next tenant waits for the same blocks, and checks what it gets, and that it stays.
next_tenant() {
  mkfifo -m 666 /tmp/late/hold
  as 1002 "$actor" /tmp/late tenant 8388608 </tmp/late/hold >/tmp/late/tenant &
  tenant=$!
  exec 8>/tmp/late/hold
  until_true says /tmp/late/tenant 'filled\|dirty'
  sleep 5 # longer than the device holds anything back: late bytes would be there by now
  exec 8>&-
  wait "$tenant" || { cat /tmp/late/tenant; fail "the next tenant saw somebody else's bytes ($1)"; }
  says /tmp/late/tenant intact || fail "the next tenant was not asked"
  rm /tmp/late/hold
  until_true all_free
}

begin_read
kill -KILL "$reader"
wait "$reader" 2>/dev/null || true
until_true draining
"$ubctl" --json leases | jq -e '.leases[0].draining_ns >= 0 and .leases[0].in_flight > 0'
test "$(pool blocks_draining)" = 4 || fail "blocks with a transfer in flight are in use again"
next_tenant killed

begin_read
lease=$("$ubctl" --json leases | jq -r '.leases[0].id')
kill -STOP "$reader"
"$ubctl" lease revoke "$lease"
draining || fail "a revoked lease with a transfer in flight is $(state)"
next_tenant revoked
kill -KILL "$reader"
wait "$reader" 2>/dev/null || true

# The daemon's own end does not wait for the device longer than its grace.
begin_read
stop_daemon
wait "$reader" 2>/dev/null || true
dmsetup remove --retry slow
