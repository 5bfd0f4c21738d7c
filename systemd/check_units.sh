#!/bin/bash
# Checks the units, sysusers.d and tmpfiles.d files as systemd itself reads them, on a staged copy. Exit code 77: cannot be checked here.
# usage: check_units.sh DIR-WITH-CONFIGURED-FILES
set -euo pipefail
files=$(realpath "$1")
for tool in systemd-analyze systemd-sysusers systemd-tmpfiles; do
  command -v "$tool" > /dev/null || { echo "skip: no $tool"; exit 77; }
done
stage=$(mktemp -d /tmp/ubd-units-XXXXXX)
trap 'rm -rf "$stage"' EXIT
fail() { echo "FAIL: $*"; exit 1; }

# Any executable will do for ubd: the check is of the units, and the daemon may not be built.
cp "$files"/ubd.service "$files"/ubd.socket "$files"/ubd-lifeline.socket "$stage"
sed -i 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' "$stage/ubd.service"
for unit in ubd.service ubd.socket ubd-lifeline.socket; do
  said=$(SYSTEMD_UNIT_PATH="$stage:" systemd-analyze verify --man=no "$stage/$unit" 2>&1) || fail "$unit: $said"
  # Unknown keys and bad values are only warnings to systemd.
  if grep -F "$stage" <<< "$said"; then fail "$unit: systemd warns"; fi
done
# The checker must be able to fail.
sed 's|^RuntimeDirectoryMode=.*|RuntimeDirectoryMoode=0755|' "$stage/ubd.service" > "$stage/broken.service"
said=$(SYSTEMD_UNIT_PATH="$stage:" systemd-analyze verify --man=no "$stage/broken.service" 2>&1 || true)
grep -q RuntimeDirectoryMoode <<< "$said" || fail "a misspelt key goes unnoticed"

# In [Service], StartLimitIntervalSec would be ignored.
awk '/^\[/ { section = $0 } /^StartLimitIntervalSec=0$/ && section == "[Unit]" { found = 1 } END { exit !found }' "$files/ubd.service" ||
  fail "StartLimitIntervalSec=0 is not in [Unit]"
grep -q '^ExecStart=/.*/ubd --config /.*/ubd\.textproto$' "$files/ubd.service" || fail "ExecStart is not configured"

if [ "$(id -u)" -ne 0 ]; then echo "skip: sysusers and tmpfiles need root"; exit 77; fi
root=$stage/root
mkdir -p "$root/etc" "$root/run"
systemd-sysusers --root="$root" "$files/ubd.sysusers.conf" || fail "sysusers.d"
for file in passwd group; do
  grep -q "^ubd:" "$root/etc/$file" || fail "no ubd in $file"
done
systemd-tmpfiles --root="$root" --create "$files/ubd.tmpfiles.conf" || fail "tmpfiles.d"
uid=$(awk -F: '$1 == "ubd" { print $3 }' "$root/etc/passwd")
[ "$(stat -c '%a %u' "$root/run/ubd")" = "755 $uid" ] || fail "runtime directory: $(stat -c '%a %u' "$root/run/ubd"), want 755 $uid"
echo ok
