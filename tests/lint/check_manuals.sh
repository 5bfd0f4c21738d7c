#!/bin/bash
# Man pages are clean roff, and name no section that is missing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"
mapfile -t files < <(sources 'packaging/man/*')
((${#files[@]} > 0)) || { echo "no man pages in packaging/man: write ubd(8) and ubctl(1)"; exit 1; }
pages=()
for file in "${files[@]}"; do
  [[ $file =~ \.[1-8]$ ]] && pages+=("$file")
done
mandoc -T lint -W warning "${pages[@]}" || { echo "fix what mandoc says above"; exit 1; }
echo "${#pages[@]} man pages are clean"
