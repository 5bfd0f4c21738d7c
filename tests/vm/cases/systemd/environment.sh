#!/bin/bash
# systemd is PID 1, answers, and runs a notify service.
set -eu
test "$(cat /proc/1/comm)" = systemd
systemctl --no-pager list-units --type=service | head
systemd-run --wait --property=Type=notify /bin/sh -c 'systemd-notify --ready; exit 0'
