#!/bin/bash
# lane.sh NAME: one lane of run-tests.sh. Everything goes to build/lanes/NAME.log; when it fails, the part that tells why is printed.
# With UBD_LONG=1 the lanes do much more; UBD_REPEAT says how often everything is run under sanitizers then (default 200).
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
lanes=$root/build/lanes
name=$1
log=$lanes/$name.log
long=${UBD_LONG:-0}
repeat=1
((long)) && repeat=${UBD_REPEAT:-200}
cd "$root" || exit 1

configure() { cmake --preset "$@"; }
build() { cmake --build --preset "$1"; }

# tests PRESET LABEL JOBS [OPTION...]: the tests with that label, and a report for the closing summary.
tests() {
  rm -rf "build/$1/reports/$2"
  mkdir -p "build/$1/reports/$2"
  ctest --preset "$1" -L "^$2\$" -j "$3" --output-junit "$lanes/$1-$2.junit.xml" "${@:4}"
}

# counted COMMAND...: what its processes count (packaging/cmake/compiler.cmake) is left in build/asan/profiles. Some of them run as other users,
# who cannot reach the build folder.
counted() {
  local code=0 counts
  counts=$(mktemp -d /tmp/ubd-counts-XXXXXX) && chmod 1777 "$counts" || return
  LLVM_PROFILE_FILE=$counts/%p-%m.profraw "$@" || code=$?
  mkdir -p build/asan/profiles
  # Of a process that was killed while it wrote, the file is not whole.
  find "$counts" -name '*.profraw' >"$counts/list"
  llvm-profdata-14 merge --failure-mode=all -o "build/asan/profiles/$name.profdata" -f "$counts/list" 2>"$counts/notes" || cat "$counts/notes"
  rm -rf "$counts"
  return "$code"
}

run() {
  case $name in
    configure) configure full ;;
    lint) tests full lint 1 ;;
    build-full) build full ;;
    build-asan) rm -rf build/asan/profiles && configure asan -DUBD_FUZZ_SECONDS=$((long ? 900 : 10)) && build asan ;;
    build-tsan) configure tsan && build tsan ;;
    unit-full) tests full unit 2 ;;
    unit-asan) counted tests asan unit 2 --repeat "until-fail:$repeat" ;;
    unit-tsan) tests tsan unit 2 --repeat "until-fail:$repeat" ;;
    integration-full) tests full integration 2 ;;
    integration-asan) counted tests asan integration 1 --repeat "until-fail:$repeat" ;;
    crash-full) UBD_CRASH_ROUNDS=$((long ? 10 * repeat : 200)) tests full crash 1 ;;
    crash-asan) UBD_CRASH_ROUNDS=$((long ? repeat : 20)) counted tests asan crash 1 ;;
    bench-full) tests full bench 1 ;;
    fuzz-asan) tests asan fuzz 2 ;;
    guest) tests full guest 1 ;;
    quickstart) packaging/quickstart.sh ;;
    coverage) packaging/lanes/coverage.py build/asan ;;
    skips) packaging/lanes/report.py build ;;
    *)
      echo "no lane $name"
      return 2
      ;;
  esac
}

code=0
run >"$log" 2>&1 </dev/null || code=$?
if ((code != 0)); then
  reports=("$lanes/${name#*-}-${name%%-*}.junit.xml" "$lanes/full-$name.junit.xml")
  case $name in
    configure | build-*) grep -E -A 8 'FAILED:|rror:|CMake Error' "$log" | head -n 120 ;;
    *)
      for report in "${reports[@]}"; do
        [[ ! -e $report ]] || "$root/packaging/lanes/failures.py" "$report"
      done
      tail -n 40 "$log" | cut -c -300
      ;;
  esac
  echo "lane $name failed with $code; the whole output: build/lanes/$name.log"
fi
exit "$code"
