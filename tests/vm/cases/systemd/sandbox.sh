#!/bin/bash
# Two tighter variants of the unit still serve: without any device, and with systemd's own list of calls for a system service.
set -eu
. "$UBD_VM/guest/case-lib.sh"
cmake --install "$UBD_BUILD" >/dev/null
systemd-sysusers
mkdir -p /usr/local/etc/ubd /etc/systemd/system/ubd.service.d
small_config 16 >/usr/local/etc/ubd/ubd.textproto
for variant in 'PrivateDevices=yes' 'SystemCallFilter=@system-service'; do
  printf '[Service]\n%s\n' "$variant" >/etc/systemd/system/ubd.service.d/test.conf
  systemctl daemon-reload
  systemctl start ubd || { journalctl -u ubd --no-pager | tail -20; fail "did not start with $variant"; }
  "$ubctl" --json pools | jq -e '.pools[0].blocks_free == 16 and .pools[0].locked == "yes"' || fail "pools with $variant"
  head -c 5000000 /dev/urandom >/tmp/data
  "$ubctl" demo /tmp/data || fail "demo with $variant"
  systemctl stop ubd
done
rm /etc/systemd/system/ubd.service.d/test.conf
systemctl daemon-reload
systemd-analyze security --no-pager ubd.service | tail -1
