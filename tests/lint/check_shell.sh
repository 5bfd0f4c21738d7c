#!/bin/bash
# Shell scripts pass shellcheck.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
mapfile -t files < <(sources "*" | while read -r file; do
  if head -n 1 "$file" | grep -aqE '^#!.*\b(ba)?sh\b|^# shellcheck shell='; then echo "$file"; fi
done)
((${#files[@]} > 0)) || { echo "found no scripts"; exit 1; }
shellcheck -x -P SCRIPTDIR -P tests/vm "${files[@]}" || { echo "fix what shellcheck says above"; exit 1; }
echo "${#files[@]} scripts are clean"
