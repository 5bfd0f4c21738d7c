# For the cases: a daemon on a private runtime directory, and checks that say what they missed. Sourced, with `set -eu` in force.
# shellcheck shell=bash
ubd=$UBD_BUILD/bin/ubd
ubctl=$UBD_BUILD/bin/ubctl

# What the daemons of a case logged is shown whenever it does not pass; a timeout arrives as TERM.
show_logs() {
  local rc=$? log
  [ "$rc" = 0 ] && return
  for log in /tmp/*/log; do
    [ -e "$log" ] && echo "--- $log" && tail -n 40 "$log"
  done
}
trap show_logs EXIT
trap 'exit 124' TERM

fail() {
  echo "FAILED: $*"
  exit 1
}

# Waits for a condition that has no event to wait for here; the case's own timeout bounds it.
until_true() {
  until "$@"; do sleep 0.2; done
}

small_config() {
  printf 'pool { name: "host" block_size: "2MiB" blocks: %s page_size: "4KiB" reserve_blocks: 1 %s }\n' "$1" "${2:-}"
}

# start_daemon DIR CONFIG_TEXT [COMMAND PREFIX...]: leaves the pid in $daemon.
start_daemon() {
  local dir=$1 text=$2
  shift 2
  mkdir -p "$dir"
  echo "$text" >"$dir/config"
  "$@" "$ubd" --config "$dir/config" --runtime-dir "$dir" >"$dir/log" 2>&1 &
  daemon=$!
  until_true test -S "$dir/ubd.sock" -o ! -d "/proc/$daemon"
  test -d "/proc/$daemon" || { cat "$dir/log"; fail "the daemon did not start"; }
}

stop_daemon() {
  kill "$daemon"
  wait "$daemon" || fail "the daemon ended with $?"
}
