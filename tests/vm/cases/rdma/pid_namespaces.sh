#!/bin/bash
# This kernel (6.1) has no SO_PEERPIDFD: a client in another PID namespace shows as pid 0, and only the pidfd that it sends names it.
set -eu
. "$UBD_VM/guest/case-lib.sh"
free() { "$ubctl" --runtime-dir "$1" --json pools | jq '.pools[0].blocks_free'; }
held() { "$ubctl" --runtime-dir "$1" --json leases | jq '.leases | length'; }

# The daemon inside, the client outside, and then the other way round. The client is killed: its memory comes back.
for side in inside outside; do
  dir=/tmp/ubd-$side
  if [ "$side" = inside ]; then
    start_daemon "$dir" "$(small_config 8)" unshare -pf --kill-child --mount-proc
    "$ubctl" --runtime-dir "$dir" lease hold 4MiB >/tmp/hold.log 2>&1 &
    holder=$!
  else
    start_daemon "$dir" "$(small_config 8)"
    unshare -pf --kill-child --mount-proc "$ubctl" --runtime-dir "$dir" lease hold 4MiB >/tmp/hold.log 2>&1 &
    holder=$!
  fi
  while [ "$(held "$dir")" != 1 ]; do
    test -d "/proc/$holder" || { cat /tmp/hold.log "$dir/log"; fail "the client $side got no lease"; }
    sleep 0.2
  done
  "$ubctl" --runtime-dir "$dir" sessions
  kill -9 "$holder"
  while [ "$(free "$dir")" != 8 ]; do sleep 0.2; done
  kill -0 "$daemon" || fail "the daemon died with its client"
  # Inside, the daemon is the child of what made its namespace.
  if [ "$side" = inside ]; then pkill -TERM -P "$daemon"; else kill "$daemon"; fi
  wait "$daemon" || true
done
