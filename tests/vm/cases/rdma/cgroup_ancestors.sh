#!/bin/bash
# A memory limit two levels above the daemon's own cgroup is found by preflight, named, and nothing is left behind.
set -eu
. "$UBD_VM/guest/case-lib.sh"
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/outer && echo +memory >/sys/fs/cgroup/outer/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/outer/middle && echo +memory >/sys/fs/cgroup/outer/middle/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/outer/middle/inner
echo 48M >/sys/fs/cgroup/outer/memory.max
mkdir -p /tmp/cg && small_config 64 >/tmp/cg/config
rc=0
sh -c "echo \$\$ >/sys/fs/cgroup/outer/middle/inner/cgroup.procs; exec '$ubd' --config /tmp/cg/config --runtime-dir /tmp/cg" >/tmp/cg/out 2>&1 || rc=$?
cat /tmp/cg/out
test "$rc" = 1 || fail "exit code $rc, not 1"
grep -q 'outer/memory.max' /tmp/cg/out || fail "the limit's file is not named"
test ! -e /tmp/cg/ubd.sock || fail "a socket was left behind"
grep -q 'oom_kill 0' /sys/fs/cgroup/outer/memory.events || fail "the kernel had to kill"
