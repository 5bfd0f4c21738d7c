#!/bin/bash
# A pool bound to node 1 has every page there; a node that does not exist is refused by name.
set -eu
. "$UBD_VM/guest/case-lib.sh"
start_daemon /tmp/numa "$(small_config 16 'numa_node: 1')"
maps=$(grep 'memfd:ubd' "/proc/$daemon/numa_maps")
echo "$maps" | head -3
pages() { echo "$maps" | grep -o " $1=[0-9]*" | cut -d= -f2 | awk '{n += $1} END {print n + 0}'; }
test "$(pages N1)" -ge $((16 * 512)) || fail "only $(pages N1) pages lie on node 1"
test "$(pages N0)" = 0 || fail "$(pages N0) pages lie on node 0"
stop_daemon
small_config 16 'numa_node: 7' >/tmp/numa/bad
if "$ubd" --config /tmp/numa/bad --runtime-dir /tmp/numa >/tmp/numa/out 2>&1; then fail "node 7 was accepted"; fi
grep -i 'node' /tmp/numa/out
