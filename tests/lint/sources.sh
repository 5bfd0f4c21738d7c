# shellcheck shell=bash
# sources GLOB...: files of the project that git knows, or would take.
sources() { git -c safe.directory='*' ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do
  [[ ! -f $file ]] || echo "$file"
done; }
