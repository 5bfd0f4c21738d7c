#!/bin/bash
# lane.sh NAME: one lane of run-tests.sh. Everything goes to build/lanes/NAME.log; when it fails, the part that tells why is printed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
lanes=$root/build/lanes
name=$1
log=$lanes/$name.log
cd "$root" || exit 1

configure() { cmake --preset "$1"; }
build() { cmake --build --preset "$1"; }

# tests PRESET LABEL JOBS: the tests with that label, and a report for the closing summary.
tests() {
  rm -rf "build/$1/reports/$2"
  mkdir -p "build/$1/reports/$2"
  ctest --preset "$1" -L "^$2\$" -j "$3" --output-junit "$lanes/$1-$2.junit.xml"
}

run() {
  case $name in
    configure) configure full ;;
    lint) tests full lint 1 ;;
    build-full) build full ;;
    build-asan | build-tsan) configure "${name#build-}" && build "${name#build-}" ;;
    unit-*) tests "${name#unit-}" unit 2 ;;
    integration-*) tests "${name#integration-}" integration 1 ;;
    crash-full) UBD_CRASH_ROUNDS=$((${UBD_LONG:-0} ? 2000 : 200)) tests full crash 1 ;;
    crash-asan) UBD_CRASH_ROUNDS=$((${UBD_LONG:-0} ? 200 : 20)) tests asan crash 1 ;;
    bench-full) tests full bench 1 ;;
    fuzz-asan) tests asan fuzz 2 ;;
    guest) tests full guest 1 ;;
    quickstart) packaging/quickstart.sh ;;
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
  case $name in
    configure | build-*) grep -E -A 8 'FAILED:|rror:|CMake Error' "$log" | head -n 120 ;;
    *) tail -n 200 "$log" ;;
  esac
  echo "lane $name failed with $code; the whole output: build/lanes/$name.log"
fi
exit "$code"
