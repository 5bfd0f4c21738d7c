#!/bin/bash
# Passes while the kernel log shows a warning, to see that the lane notices.
echo "WARNING: CPU: 0 PID: 1 at nowhere (on purpose)" >/dev/kmsg
