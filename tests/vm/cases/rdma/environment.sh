#!/bin/bash
# What the boot promises is there: two NUMA nodes, O_DIRECT on ext4, device mapper, cgroup v2.
set -eu
test -d /sys/devices/system/node/node1
dd if=/dev/zero of=/mnt/disk/direct bs=1M count=4 oflag=direct
grep -q memory /sys/fs/cgroup/cgroup.controllers
dmsetup targets | grep -q delay
dmsetup targets | grep -q flakey
dd if=/dev/zero of=/dev/vdb bs=1M count=64 && mkswap /dev/vdb && swapon /dev/vdb && swapon --show && swapoff /dev/vdb
