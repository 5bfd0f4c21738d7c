#!/usr/bin/env bash
# make-initramfs.sh KERNEL_DIR OUTPUT: busybox, the modules that reach the host's root over 9p, and guest/init.
set -euo pipefail
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

kernel=$1
output=$2
release=$(basename "$kernel"/lib/modules/*)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

mkdir -p "$stage"/{bin,proc,sys,dev,host,upper,newroot,modules}
cp /bin/busybox "$stage/bin/busybox"
for module in virtio_pci 9pnet_virtio 9p overlay; do
  modprobe -d "$kernel" -S "$release" --show-depends "$module" | awk '$1 == "insmod" {print $2}'
done | awk '!seen[$0]++' >"$stage/module-paths"
count=0
while read -r path; do
  count=$((count + 1))
  cp "$path" "$stage/modules/$(printf '%02d' "$count")-$(basename "$path")"
done <"$stage/module-paths"
rm "$stage/module-paths"
cp "$vm_dir/guest/init" "$stage/init"
chmod +x "$stage/init"
(cd "$stage" && find . | cpio -o -H newc --quiet) | gzip -1 >"$output"
