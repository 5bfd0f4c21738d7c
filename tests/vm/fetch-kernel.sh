#!/usr/bin/env bash
# Fetches Debian's own kernel package and unpacks it into the cache; nothing is installed. Prints the unpacked folder.
set -euo pipefail
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

newest() { apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-[0-9]/ {print $2; exit}'; }
package=$(newest)
if [ -z "$package" ]; then
  as_root=()
  [ "$EUID" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -q >&2
  package=$(newest)
fi
[ -n "$package" ] || die "apt knows no linux-image-amd64: is this Debian 12 with its main archive?"
target=$cache_dir/$package
if [ ! -e "$target/complete" ]; then
  rm -rf "$target"
  mkdir -p "$target/download"
  (cd "$target/download" && apt-get download -q "$package" >&2)
  dpkg -x "$target/download/"*.deb "$target"
  rm -rf "$target/download"
  release=$(basename "$target"/lib/modules/*)
  depmod -b "$target" "$release"
  touch "$target/complete"
fi
echo "$target"
