#!/bin/bash
# Disks that fail: EIO from the device and a full file system come back as typed errors on direct and staged paths, and the daemon goes on; a deadline
# answers long before the device does.
set -eu
. "$UBD_VM/guest/case-lib.sh"
export DM_DISABLE_UDEV=1 # there is none here: the device nodes are made at once
actor=$UBD_BUILD/bin/transfer_once
modprobe -a dm-flakey dm-delay loop
start_daemon /tmp/faults "$(small_config 8 'lock_pages: OFF')"
export UB_RUNTIME_DIR=/tmp/faults
transfer() { "$actor" /tmp/faults "$@" | tee /tmp/faults/said; }
said() { grep -q "$1" /tmp/faults/said || fail "wanted '$1'"; }

"$actor" /tmp/faults read /mnt/disk/none 0 4096 2>/tmp/faults/none && fail "a file that is not there"
grep -q 'No such file' /tmp/faults/none
dd if=/dev/urandom of=/mnt/disk/data bs=1M count=4 status=none
transfer read /mnt/disk/data 0 2097152 direct-only
said 'error= code=0 bytes=2097152 path=direct'
transfer read /mnt/disk/data 0 2097152 staged-only
said 'error= code=0 bytes=2097152 path=staged reason=forced'
transfer read /mnt/disk/data 4194000 4096 direct-only
said 'error=PATH_UNAVAILABLE .* reason=unaligned'

# Every request fails from the first second on.
size=$(blockdev --getsz /dev/vdb)
echo "0 $size flakey /dev/vdb 0 0 3600" | dmsetup create broken
transfer read /dev/mapper/broken 0 1048576 direct-only
said 'error=DEVICE_ERROR .* errno=5'
transfer write /dev/mapper/broken 0 1048576 direct-only
said 'error=DEVICE_ERROR .* errno=5'
dmsetup remove --retry broken

# A file system of 16 MiB.
truncate -s 16M /mnt/disk/small.img && mkfs.ext4 -q -F /mnt/disk/small.img
mkdir -p /mnt/small && mount -o loop /mnt/disk/small.img /mnt/small
dd if=/dev/zero of=/mnt/small/fill bs=64k status=none 2>/dev/null || true
for policy in direct-only staged-only; do
  : >/mnt/small/target 2>/dev/null || fail "no inode left for the test"
  transfer write /mnt/small/target 0 4194304 "$policy"
  said 'error=NO_SPACE'
done
umount /mnt/small

echo "0 $size delay /dev/vdb 0 4000" | dmsetup create late
transfer read /dev/mapper/late 0 1048576 direct-only 300
said 'error=TRANSFER_DEADLINE .* more=1'
tail -n 1 /tmp/faults/said | grep -q 'more=0' || fail "the end of the transfer was not told"
dmsetup remove --retry late
"$ubctl" status
stop_daemon
