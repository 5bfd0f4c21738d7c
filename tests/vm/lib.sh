# Shared by the scripts of the guest lane: where things lie. Sourced.
# shellcheck shell=bash
vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo_dir=$(cd "$vm_dir/../.." && pwd)
# The kernel package is 70 MB: kept outside the build folder, so that a fresh clone finds it again.
cache_dir=${UBD_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ubd-vm}
export vm_dir repo_dir cache_dir

die() {
  echo "tests/vm: $*" >&2
  exit 1
}
