# Shared by both boots, inside the guest: parameters, the result share, and the case runner. Sourced.
# shellcheck shell=bash
parameter() { tr ' ' '\n' </proc/cmdline | sed -n "s/^$1=//p"; }

mount_results() {
  mkdir -p /run/ubd-results
  mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none results /run/ubd-results
}

# Runs each case named in the result share's list, under its own timeout, and leaves NAME.rc and NAME.log there. The console lines
# tell the host which case a kernel message belongs to.
run_cases() {
  local name seconds rc
  while read -r name seconds; do
    echo "UBD-GUEST: begin $name"
    echo "ubd case $name begins" >/dev/kmsg
    rc=0
    timeout -k 5 "$seconds" "$UBD_VM/cases/$name.sh" >"/run/ubd-results/${name//\//__}.log" 2>&1 </dev/null || rc=$?
    [ "$rc" = 124 ] && echo "timed out after $seconds s" >>"/run/ubd-results/${name//\//__}.log"
    echo "$rc" >"/run/ubd-results/${name//\//__}.rc"
    echo "UBD-GUEST: end $name $rc"
  done </run/ubd-results/cases
}

power_off() {
  echo "UBD-GUEST: done"
  sync -f /run/ubd-results
  # The kernel powers off from a work item; PID 1 must not end before, and can start no program once the disks are gone.
  mkfifo /run/never
  exec 9<>/run/never
  echo o >/proc/sysrq-trigger
  while true; do read -r -u 9; done
}
