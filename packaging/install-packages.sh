#!/bin/bash
# install-packages.sh [GROUP...]: installs the Debian packages of packaging/packages.txt that are missing (groups: build, test,
# lint, guest; default: all). Does nothing, and needs neither root nor network, when nothing is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
  echo "install-packages: $*" >&2
  exit 1
}

# Names in the wanted groups.
wanted() {
  awk -v groups=" ${*:-build test lint guest} " '
    /^# group:/ { on = index(groups, " " $3 " ") > 0; next }
    /^#/ || NF == 0 { next }
    on { print $1 }' "$here/packages.txt"
}

for group in "$@"; do
  grep -q "^# group: $group\b" "$here/packages.txt" || fail "no group '$group'; there are: build, test, lint, guest"
done
[[ -n $(command -v dpkg-query) && -n $(command -v apt-get) ]] ||
  fail "this is not a Debian system; install what packaging/packages.txt lists by hand"

missing=()
while read -r name; do
  # A package may be there under a virtual name too (pkg-config is pkgconf's).
  status=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$name")
done < <(wanted "$@")
if ((${#missing[@]} == 0)); then
  echo "packages: nothing to install"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || fail "missing: ${missing[*]}. Run as root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
install() {
  "${as_root[@]}" apt-get install -y --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "packages: installing ${missing[*]}"
# The package lists may be absent or old: then fetch them once and try again.
if ! install >"$log" 2>&1; then
  "${as_root[@]}" apt-get update -o APT::Update::Error-Mode=any >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    fail "cannot fetch the package lists: no network, or no Debian 12 source in /etc/apt. Missing: ${missing[*]}"
  }
  install >"$log" 2>&1 || {
    tail -n 15 "$log" >&2
    fail "apt-get could not install: ${missing[*]}"
  }
fi
echo "packages: installed ${#missing[@]}"
