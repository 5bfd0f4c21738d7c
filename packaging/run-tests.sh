#!/bin/bash
# run-tests.sh [--quick|--no-guest|--long]: from nothing to a verdict. Installs what is missing, then runs every lane (packaging/lanes/lane.sh), each
# whatever became of the others, and says how long it took; a lane's whole output is in build/lanes/LANE.log. Closes with the tests that were
# skipped and why, the share of lines that were run, and ctest's summary of the lanes. Exit code 0: all passed. With CI=true a skipped test fails the run.
#   --quick     lint, the optimised build, its unit and its integration tests
#   --no-guest  nothing that needs the virtual machine
#   --long      everything 200 times under sanitizers ($UBD_REPEAT), ten times the crashes, all figures of the benches, 15 minutes for each fuzzer:
#               a day's work, not for CI
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
lanes=$root/build/lanes
mode=all
patience=1
guest=yes
groups=(build test lint guest)
for argument in "$@"; do
  case $argument in
    --quick) mode=quick guest=no groups=(build test lint) ;;
    --no-guest) guest=no groups=(build test lint) ;;
    --long) export UBD_LONG=1 patience=100 ;;
    *)
      echo "run-tests.sh: unknown option $argument; see the head of the script" >&2
      exit 2
      ;;
  esac
done

"$root/packaging/install-packages.sh" "${groups[@]}"
rm -rf "$lanes"
mkdir -p "$lanes"

# lane NAME SECONDS NEEDS [PROVIDES]: one lane for ctest; one whose need failed is not run, and counts as failed.
lane() {
  echo "add_test([[$1]] [[$root/packaging/lanes/lane.sh]] [[$1]])"
  echo "set_tests_properties([[$1]] PROPERTIES TIMEOUT $(($2 * patience)) FIXTURES_REQUIRED \"$3\" FIXTURES_SETUP \"${4:-}\")"
}
{
  lane configure 300 "" configured
  lane lint 1800 configured
  lane build-full 2400 configured full
  lane unit-full 900 full
  lane integration-full 1200 full
  [[ $guest == no ]] || lane guest 1200 full
  if [[ $mode == all ]]; then
    lane crash-full 1200 full
    lane bench-full 600 full
    lane quickstart 1200 configured
    lane build-asan 2400 "" asan
    lane unit-asan 900 asan
    lane integration-asan 1200 asan
    lane crash-asan 1200 asan
    lane fuzz-asan 1200 asan
    lane build-tsan 1200 "" tsan
    lane unit-tsan 900 tsan
    lane coverage 300 asan
  fi
  lane skips 60 ""
} >"$lanes/CTestTestfile.cmake"

# ctest's closing lines are held back until the skipped tests are listed. Line by line, so that a log shows each lane as it ends.
held=
show() {
  local line
  while IFS= read -r line; do
    [[ $line != *'tests passed,'* ]] || held=yes
    if [[ -n $held ]]; then
      printf '%s\n' "$line" >>"$lanes/closing"
    else
      printf '%s\n' "$line"
    fi
  done
}
code=0
ctest --test-dir "$lanes" --output-on-failure 2>&1 | show || code=$?
cat "$lanes/skips.log"
[[ ! -e $lanes/coverage.log ]] || tail -n 1 "$lanes/coverage.log"
cat "$lanes/closing" 2>/dev/null || code=1
exit "$code"
