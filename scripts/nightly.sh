#!/bin/bash
# The checks too slow for ./test.sh: every test under asan and tsan, clang-tidy, 500 killed runs.
# Usage: scripts/nightly.sh RESULT_FOLDER   writes RESULT_FOLDER/DATE.md and a log for each check
set -uo pipefail
if [[ $# -ne 1 ]]; then
  echo "usage: scripts/nightly.sh RESULT_FOLDER" >&2
  exit 2
fi
mkdir -p "$1" || exit 1
results="$(cd "$1" && pwd)"
cd "$(dirname "$0")/.." || exit 1
date="$(date -u +%Y-%m-%d)"
report="$results/$date.md"
jobs="$(nproc)"
verdict=0

# Called by name below.
# shellcheck disable=SC2317
asan() { cmake --preset asan && cmake --build --preset asan -j "$jobs" && ctest --preset asan -j "$jobs"; }
# shellcheck disable=SC2317
tsan() { cmake --preset tsan && cmake --build --preset tsan -j "$jobs" && ctest --preset tsan -j "$jobs"; }
# shellcheck disable=SC2317
tidy() { cmake --preset tidy && cmake --build --preset tidy -j "$jobs" -- -k 0; }
# shellcheck disable=SC2317
kills() {
  cmake --preset release && cmake --build --preset release -j "$jobs" --target trainscope &&
    tests/cli/kill_test.py build/release/bin/trainscope --rounds 500
}

scripts/setup.sh build test nightly || exit 1
{
  echo "# Nightly checks, $date, commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
  echo
  echo "| check | result | seconds | last line |"
  echo "|---|---|---|---|"
} >"$report"
for check in asan tsan tidy kills; do
  log="$results/$date-$check.log"
  echo "nightly: $check (log: $log)"
  start=$SECONDS
  result=ok
  "$check" >"$log" 2>&1 || { result=FAILED; verdict=1; }
  last="$(grep -v '^[[:space:]]*$' "$log" | tail -n 1 | tr '|' '/')"
  echo "| $check | $result | $((SECONDS - start)) | $last |" | tee -a "$report"
done
echo "nightly: $report"
exit "$verdict"
