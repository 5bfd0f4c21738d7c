#!/usr/bin/env bash
# check-case.sh RESULTS NAME: shows what one case printed in the guest and ends with its exit code (77: skipped there).
set -u
stem="$1/${2//\//__}"
cat "$stem.log" 2>/dev/null
if [ ! -e "$stem.rc" ]; then
  echo "the guest brought no result for $2; see $1/console.log"
  exit 1
fi
exit "$(cat "$stem.rc")"
