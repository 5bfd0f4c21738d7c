#!/bin/bash
# The shipped unit, installed as shipped: READY and STATUS, a lease, reload, stop within its grace, start again, and a watchdog that brings
# back a daemon that stands still.
set -eu
. "$UBD_VM/guest/case-lib.sh"
cmake --install "$UBD_BUILD" >/dev/null
systemd-sysusers
mkdir -p /usr/local/etc/ubd
small_config 16 >/usr/local/etc/ubd/ubd.textproto
mkdir -p /etc/systemd/system/ubd.service.d
printf '[Service]\nWatchdogSec=8s\nTimeoutAbortSec=5s\n' >/etc/systemd/system/ubd.service.d/test.conf
systemctl daemon-reload
property() { systemctl show -P "$1" ubd; }
step() { echo "step: $*"; }
show() { systemctl --no-pager status ubd; journalctl -u ubd --no-pager | tail -30; }

systemctl start ubd || { show; fail "did not start"; }
property StatusText | grep -q 'serving host' || fail "STATUS says: $(property StatusText)"
test "$(stat -c %U "/proc/$(property MainPID)")" = ubd || fail "runs as $(stat -c %U "/proc/$(property MainPID)")"
"$ubctl" status || fail "status"
"$ubctl" --json pools | jq -e '.pools[0].locked == "yes" and .pools[0].blocks_free == 16' || fail "pools"
step "a lease, and its fields in the journal"
"$ubctl" lease hold 4MiB >/tmp/hold.log 2>&1 &
holder=$!
while [ "$("$ubctl" --json leases | jq '.leases | length')" != 1 ]; do sleep 0.2; done
journalctl --sync
journalctl -u ubd -o json --no-pager | jq -se 'any(.UBD_LEASE != null and .UBD_UID == "0")' || fail "no journal fields"

step "a reload and a stop with a holder"
systemctl reload ubd || fail "reload"
began=$(cut -d. -f1 /proc/uptime)
systemctl stop ubd
took=$(($(cut -d. -f1 /proc/uptime) - began))
test "$(property Result)" = success || { show; fail "stop ended as $(property Result)"; }
test "$took" -le 25 || fail "stop took $took s"
rc=0; wait "$holder" || rc=$?
test "$rc" = 3 || fail "the holder ended with $rc when the daemon stopped"
test ! -e /run/ubd/ubd.sock || fail "the socket was left behind"

step "restart, and kill -9"
systemctl start ubd
first=$(property MainPID)
systemctl restart ubd
test "$(property MainPID)" != "$first" || fail "restart kept the process"
kill -9 "$(property MainPID)"
while [ "$(property NRestarts)" -lt 1 ]; do sleep 0.2; done
until_true systemctl is-active -q ubd
"$ubctl" status >/dev/null || fail "not back after kill -9"

step "standing still, until the watchdog ends it"
stopped=$(property MainPID)
kill -STOP "$stopped"
while [ "$(property MainPID)" = "$stopped" ] || ! systemctl is-active -q ubd; do sleep 0.5; done
"$ubctl" status >/dev/null || fail "not back after the watchdog"
dmesg | grep -qi 'ubd.service: Watchdog timeout' || fail "it was not the watchdog"
systemctl stop ubd
