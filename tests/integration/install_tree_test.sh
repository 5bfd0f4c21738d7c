#!/bin/bash
# install_tree_test.sh BUILD PREFIX: everything is installed, under the prefix, and the installed parts agree: what the unit starts exists and takes
# the config that it names, and the man pages and the completion are where programs look for them.
set -euo pipefail
build=$1
prefix=$2
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
fail() {
  echo "$*"
  find "$stage" -type f
  exit 1
}

DESTDIR=$stage cmake --install "$build" >/dev/null
unit=$stage$prefix/lib/systemd/system/ubd.service
[[ -f $unit ]] || fail "no unit"
read -r program config < <(sed -n 's/^ExecStart=\([^ ]*\) --config \([^ ]*\).*/\1 \2/p' "$unit")
[[ -x $stage$program ]] || fail "the unit starts $program, which is not installed"
[[ -f $stage$config ]] || fail "the unit names $config, which is not installed"
"$stage$program" --config "$stage$config" --check-config >/dev/null || fail "the installed config is not valid"
"$stage$program" --version | grep -q '^ubd [0-9]' || fail "ubd does not run from the tree"
"$stage$prefix/bin/ubctl" --version | grep -q '[0-9]' || fail "ubctl does not run from the tree"
for path in share/bash-completion/completions/ubctl share/man/man8/ubd.8 share/man/man1/ubctl.1 share/doc/ubd/LICENSE share/doc/ubd/README.md \
  lib/sysusers.d/ubd.conf lib/tmpfiles.d/ubd.conf lib/systemd/system/ubd.socket include/ub/client.h; do
  [[ -f $stage$prefix/$path ]] || fail "not installed: $path"
done
! find "$stage" -name '*test*' | grep . || fail "tests are installed"
! grep -rIl --exclude-dir=doc -e "$build" "$stage" | grep . || fail "the build folder's path is in the files above"
echo "the installed tree is complete"
