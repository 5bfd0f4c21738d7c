#!/bin/sh
# Proves the model of the sleeping protocol, then shows that it would find what it is there to find: without any one of
# the four fences it must fail.
set -eu
if ! command -v spin >/dev/null; then echo "no spin on this machine: apt-get install spin"; exit 77; fi
model=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# explore [MACRO]: prints what the search found.
explore() {
  spin -a ${1:+-D"$1"} "$model" >/dev/null
  cc -O2 -DSAFETY -o pan pan.c 2>/dev/null
  ./pan -m100000
}

report=$(explore)
echo "$report" | grep -q 'errors: 0' || { echo "$report"; echo "the protocol loses a wake-up"; exit 1; }
if echo "$report" | grep -q 'max search depth too small'; then echo "$report"; exit 1; fi
echo "$report" | grep -E 'states, stored|errors:'

for fence in NO_FENCE_SUBMIT NO_FENCE_DAEMON NO_FENCE_COMPLETE NO_FENCE_CLIENT; do
  report=$(explore "$fence")
  echo "$report" | grep -q 'invalid end state' || { echo "$report"; echo "$fence: the model misses it"; exit 1; }
  echo "$fence: a wake-up is lost, as it must be"
done
