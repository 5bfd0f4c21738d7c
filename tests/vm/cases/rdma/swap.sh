#!/bin/bash
# Pages of a pool that is neither locked nor registered are swapped out under a lease. That proves nothing, against nobody: each block gets
# fresh memory, and no line speaks of tampering.
set -eu
. "$UBD_VM/guest/case-lib.sh"
mkswap /dev/vdb >/dev/null
swapon /dev/vdb
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
group=/sys/fs/cgroup/swapped
mkdir -p "$group"
# Memory belongs to the group of whoever touches it first: the daemon starts inside.
start_daemon /tmp/swap "$(small_config 8 'lock_pages: OFF') engine { register_blocks: OFF }" sh -c "echo \$\$ >$group/cgroup.procs; exec \"\$@\"" sh
"$ubctl" --runtime-dir /tmp/swap lease hold 16MiB >/tmp/swap/hold 2>&1 &
holder=$!
pools() { "$ubctl" --runtime-dir /tmp/swap --json pools; }
until_true sh -c "'$ubctl' --runtime-dir /tmp/swap --json pools | jq -e '.pools[0].blocks_leased == 8' >/dev/null"
pools | jq -e '.pools[0].locked | startswith("no")' || fail "the pool is locked"
swapped() {
  echo 64M >"$group/memory.reclaim" || true
  test "$(cat "$group/memory.swap.current")" -gt $((8 << 20))
}
until_true swapped 2>/dev/null
echo "$(($(cat "$group/memory.swap.current") >> 20)) MiB are swapped out"
kill "$holder"
wait "$holder" || fail "the holder ended with $?"
until_true sh -c "'$ubctl' --runtime-dir /tmp/swap --json pools | jq -e '.pools[0].blocks_free == 8' >/dev/null"
grep -q 'audit recycled' /tmp/swap/log || fail "no block got fresh memory"
if grep -i tamper /tmp/swap/log; then fail "somebody was accused of tampering"; fi
stop_daemon
swapoff /dev/vdb
