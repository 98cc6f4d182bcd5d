#!/bin/bash
# The checks too slow for ./test.sh: every test under asan and tsan, clang-tidy, 500 killed runs,
# 10^8 runs of the fuzzers.
# Usage: scripts/nightly.sh RESULT_FOLDER [CHECK...]   checks: asan tsan tidy kills fuzz; none: all
# Writes RESULT_FOLDER/DATE.md, a log for each check, and the input of a fuzzer's crash.
# FUZZ_RUNS: runs of each of the two fuzzers (50000000), which run side by side.
set -uo pipefail
if [[ $# -lt 1 ]]; then
  echo "usage: scripts/nightly.sh RESULT_FOLDER [asan|tsan|tidy|kills|fuzz]..." >&2
  exit 2
fi
mkdir -p "$1" || exit 1
results="$(cd "$1" && pwd)"
cd "$(dirname "$0")/.." || exit 1
date="$(date -u +%Y-%m-%d)"
report="$results/$date.md"
jobs="$(nproc)"
verdict=0
checks=("${@:2}")
[[ ${#checks[@]} -gt 0 ]] || checks=(asan tsan tidy kills fuzz)

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
# One fuzzer: name, then arguments of libFuzzer. New inputs gather in build/fuzz/corpus/NAME.
# shellcheck disable=SC2317
fuzz_one() {
  local name="$1" log="$results/$date-fuzz-$1.log"
  shift
  mkdir -p "build/fuzz/corpus/$name"
  # Entropic scheduling costs more than the runs themselves on so many features.
  ASAN_OPTIONS=malloc_context_size=0:quarantine_size_mb=8 "build/fuzz/bin/fuzz_$name" \
    "-runs=${FUZZ_RUNS:-50000000}" -entropic=0 -timeout=10 -rss_limit_mb=2048 \
    -malloc_limit_mb=1024 "-artifact_prefix=$results/$date-$name-" "build/fuzz/corpus/$name" \
    "$@" >"$log" 2>&1 || { tail -n 40 "$log"; return 1; }
  sed -n "s/^#\([0-9]*\)\s*DONE\s*cov: \([0-9]*\).*corp: \([0-9]*\).*/$name: \1 runs, \2 edges, corpus of \3, 0 crashes/p" "$log"
}
# shellcheck disable=SC2317
fuzz() {
  cmake --preset fuzz && cmake --build --preset fuzz -j "$jobs" || return 1
  local seeds=build/fuzz/model_seeds number=0 model safetensors verdict=0
  mkdir -p "$seeds"
  while IFS= read -r model; do
    number=$((number + 1))
    cp "$model" "$seeds/$number.onnx"
  done < <(find /usr/share/libonnx-testdata tests/data/models -name model.onnx -size -16k)
  fuzz_one safetensors -max_len=1024 -dict=tests/fuzz/safetensors.dict \
    tests/fuzz/seeds/safetensors >"$results/safetensors.line" &
  safetensors=$!
  fuzz_one importer -max_len=4096 "$seeds" >"$results/importer.line" || verdict=1
  wait "$safetensors" || verdict=1
  cat "$results/importer.line" "$results/safetensors.line" | paste -sd ';'
  rm -f "$results/importer.line" "$results/safetensors.line"
  return "$verdict"
}

scripts/setup.sh build test nightly || exit 1
{
  echo "# Nightly checks, $date, commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
  echo
  echo "| check | result | seconds | last line |"
  echo "|---|---|---|---|"
} >"$report"
for check in "${checks[@]}"; do
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
