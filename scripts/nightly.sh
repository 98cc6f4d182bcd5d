#!/bin/bash
# The checks too slow for ./test.sh: every test under asan and tsan, the window on 2,000 damaged runs, clang-tidy, g++ on
# each source and header alone, 500 killed runs, attacks by 5,088 mutants of models, 800 damaged runs and 300 data files, all mutants
# of the CUDA back end and all races of its kernels, 10^8 runs of the fuzzers.
# Usage: scripts/nightly.sh RESULT_FOLDER [CHECK...]
#   checks: asan tsan window tidy sources kills attack mutants races fuzz; none: all
# Writes RESULT_FOLDER/DATE.md, a log for each check, DATE-window.md, DATE-attacks.md, DATE-mutants.md, DATE-races.md, and the
# input of a fuzzer's crash.
# FUZZ_RUNS: runs of each of the two fuzzers (50000000), which run side by side; a fiftieth more of
# them under sanitizers. ATTACK_SEED: of the attacks (1).
set -uo pipefail
if [[ $# -lt 1 ]]; then
  echo "usage: scripts/nightly.sh RESULT_FOLDER [asan|tsan|window|tidy|sources|kills|attack|mutants|races|fuzz]..." >&2
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
[[ ${#checks[@]} -gt 0 ]] || checks=(asan tsan window tidy sources kills attack mutants races fuzz)

# With the checks that take a third of the time of all sources, which preset asan leaves out.
# Called by name below.
# shellcheck disable=SC2317
asan() {
  cmake --preset asan -DTRAINSCOPE_SANITIZE_NOT= && cmake --build --preset asan -j "$jobs" &&
    TRAINSCOPE_GENERATED_FAULTS=200 ctest --preset asan -j "$jobs"
}
# shellcheck disable=SC2317
tsan() { cmake --preset tsan && cmake --build --preset tsan -j "$jobs" && ctest --preset tsan -j "$jobs"; }
# What of asan and tsan is the window's, which needs none of the other tests: all of its tests without
# a display, those of the label long among them, with ten times as many damaged runs as in
# ./test.sh, and its threads: Budget's alone, those that read ahead, and both as they are driven
# through the window. Writes DATE-window.md.
# shellcheck disable=SC2317
window() {
  local tests=(gui_budget_test gui_data_test gui_draw_test gui_panels_test gui_platform_test gui_ui_test gui_views_test
               gui_workbench_test)
  local damaged=2000 log="$results/$date-window" asan=0 tsan=0
  rm -f "$log-asan.log" "$log-tsan.log"
  cmake --preset asan -DTRAINSCOPE_SANITIZE_NOT= && cmake --build --preset asan -j "$jobs" --target trainscope "${tests[@]}" &&
    cmake --preset tsan &&
    cmake --build --preset tsan -j "$jobs" --target trainscope gui_budget_test gui_panels_test gui_platform_test || return 1
  TRAINSCOPE_DAMAGED_RUNS="$damaged" ctest --preset asan -j "$jobs" -R '^gui_' >"$log-asan.log" 2>&1 || asan=1
  cat "$log-asan.log"
  ctest --preset tsan -R '^gui_(budget|panels|platform[.]gui)' >"$log-tsan.log" 2>&1 || tsan=1
  cat "$log-tsan.log"
  window_report "$damaged" "$log" >"$log.md"
  tail -n 1 "$log.md"
  return "$((asan || tsan))"
}
# The report of the two logs: damaged runs, their names up to "-asan.log" and "-tsan.log".
# shellcheck disable=SC2317
window_report() {
  local damaged="$1" log="$2" part tests faults found=0
  local test='^ *[0-9]+/[0-9]+ Test +#[0-9]+: ([^ ]+) [. ]*(.*[^ ]) +([0-9.]+) sec.*$'
  local fault='ERROR: (Address|Leak|Undefined)[A-Za-z]*Sanitizer|WARNING: ThreadSanitizer|runtime error:'
  echo "# The window under sanitizers, $date, commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
  echo
  echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $jobs threads; \`scripts/nightly.sh FOLDER window\`."
  echo "$damaged damaged runs in every panel (\`gui_platform.long\`)."
  echo
  echo "| sanitizers | tests | result | seconds |"
  echo "|---|---|---|---|"
  for part in asan tsan; do
    sed -nE "s@$test@| $part | \1 | \2 | \3 |@p" "$log-$part.log" | sed 's/[*][*][*]/ /; s/  */ /g'
  done
  echo
  for part in asan tsan; do
    tests="$(grep -cE "$test" "$log-$part.log")"
    faults="$(grep -cE "$fault" "$log-$part.log")"
    found=$((found + faults))
    [[ $tests -gt 0 ]] || echo "No test ran under $part."
    grep -E "$fault" "$log-$part.log" | sed 's/^/    /'
  done
  echo "Findings of sanitizers: $found; $(cat "$log-asan.log" "$log-tsan.log" | grep -E 'tests passed' | paste -sd ';' | sed 's/;/; /')"
}
# shellcheck disable=SC2317
tidy() { cmake --preset tidy && cmake --build --preset tidy -j "$jobs" -- -k 0; }
# Each source and each header alone, with the warnings that unity builds leave out.
# shellcheck disable=SC2317
sources() {
  cmake --preset release -B build/sources -DTRAINSCOPE_UNITY=OFF -DTRAINSCOPE_PRECOMPILE=OFF \
    -DTRAINSCOPE_HEADER_CHECK=ON &&
    cmake --build build/sources -j "$jobs" -- -k 0
}
# shellcheck disable=SC2317
kills() {
  cmake --preset release && cmake --build --preset release -j "$jobs" --target trainscope &&
    tests/cli/kill_test.py build/release/bin/trainscope --rounds 500
}
# shellcheck disable=SC2317
attack() {
  cmake --preset asan -DTRAINSCOPE_SANITIZE_NOT= && cmake --build --preset asan -j "$jobs" --target trainscope &&
    tests/attack/campaign.py build/asan/bin/trainscope --seed "${ATTACK_SEED:-1}" \
      --out "$results/$date-attacks.md"
}
# Without a CUDA back end in the build (77) there is nothing to check, which the last line says.
# shellcheck disable=SC2317
mutants() {
  local code=0
  cmake --preset release && cmake --build --preset release -j "$jobs" --target cuda_mutation_gate || return 1
  tests/cuda/gates/mutants.py build/release --out "$results/$date-mutants.md" || code=$?
  [[ $code -eq 0 || $code -eq 77 ]]
}
# Every CUDA kernel on every example, in nine orders of threads and blocks. Without c++filt (77) kernels have no names,
# which the last line says.
# shellcheck disable=SC2317
races() {
  local code=0
  cmake --preset release && cmake --build --preset release -j "$jobs" --target cuda_races || return 1
  tests/cuda/races/races.py build/release/bin/cuda_races --whole --jobs "$jobs" \
    --out "$results/$date-races.md" || code=$?
  [[ $code -eq 0 || $code -eq 77 ]]
}
# One fuzzer: preset, name, runs, then arguments of libFuzzer. Prints what it did in a line. New
# inputs gather in build/corpus/NAME, which every preset starts from.
# shellcheck disable=SC2317
fuzz_one() {
  local preset="$1" name="$2" runs="$3" log="$results/$date-$1-$2.log"
  shift 3
  mkdir -p "build/corpus/$name"
  # Entropic scheduling costs more than the runs themselves on so many features.
  ASAN_OPTIONS=malloc_context_size=0:quarantine_size_mb=8 "build/$preset/bin/fuzz_$name" \
    "-runs=$runs" -entropic=0 -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=1024 \
    "-artifact_prefix=$results/$date-$name-" "build/corpus/$name" "$@" >"$log" 2>&1 ||
    { tail -n 40 "$log"; return 1; }
  sed -n "s/^#\([0-9]*\)\s*DONE\s*cov: \([0-9]*\).*corp: \([0-9]*\).*/$name, $preset: \1 runs, \2 edges, corpus of \3, 0 crashes/p" "$log"
}
# Both fuzzers of a preset side by side: preset, runs of each.
# shellcheck disable=SC2317
fuzz_both() {
  local preset="$1" runs="$2" safetensors verdict=0
  cmake --preset "$preset" && cmake --build --preset "$preset" -j "$jobs" || return 1
  fuzz_one "$preset" safetensors "$runs" -max_len=1024 -dict=tests/fuzz/safetensors.dict \
    tests/fuzz/seeds/safetensors &
  safetensors=$!
  fuzz_one "$preset" importer "$runs" -max_len=4096 build/corpus/models || verdict=1
  wait "$safetensors" || verdict=1
  return "$verdict"
}
# shellcheck disable=SC2317
fuzz() {
  local runs="${FUZZ_RUNS:-50000000}" number=0 model verdict=0
  mkdir -p build/corpus/models
  while IFS= read -r model; do
    number=$((number + 1))
    cp "$model" "build/corpus/models/$number.onnx"
  done < <(find /usr/share/libonnx-testdata tests/data/models -name model.onnx -size -16k)
  { fuzz_both fuzz "$runs" || verdict=1
    # The sanitizers cost half of the speed: they see the whole corpus and some more.
    fuzz_both fuzz-asan "$((runs / 50))" || verdict=1; } | tee "$results/$date-fuzz-lines.log"
  grep ' crashes$' "$results/$date-fuzz-lines.log" | paste -sd ';'
  return "${PIPESTATUS[0]}"
}

scripts/setup.sh build window test nightly || exit 1
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
