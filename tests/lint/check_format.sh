#!/bin/bash
# C++ is formatted by clang-format-14 with the repository's .clang-format.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
mapfile -t files < <(sources '*.cc' '*.h')
((${#files[@]} > 0)) || { echo "found no sources"; exit 1; }
bad=()
for file in "${files[@]}"; do
  clang-format-14 "$file" | cmp -s - "$file" || bad+=("$file")
done
((${#bad[@]} == 0)) && echo "${#files[@]} files are formatted" && exit 0
echo "not formatted; run: clang-format-14 -i ${bad[*]}"
exit 1
