#!/bin/bash
# Builds release and runs every test, then the parsers and the planner under address and undefined
# behaviour sanitizers. Ends with "N passed, N failed" over both runs.
set -euo pipefail
cd "$(dirname "$0")"
jobs="$(nproc)"
logs="$PWD/build/test-logs"
passed=0
failed=0
skipped=0

step() { printf '\n== %s\n' "$*"; }

configure_and_build() {  # preset, then arguments of cmake --build
  local preset="$1"
  shift
  step "build $preset"
  cmake --preset "$preset" >"$logs/configure-$preset.log" || {
    cat "$logs/configure-$preset.log"
    return 1
  }
  cmake --build --preset "$preset" -j "$jobs" "$@"
}

# Runs ctest on a preset, adds its numbers to the totals, returns ctest's verdict.
run_tests() {  # preset, then arguments of ctest
  local preset="$1" log="$logs/ctest-$1.log" verdict=0
  shift
  step "test $preset"
  ctest --preset "$preset" -j "$jobs" --no-tests=error "$@" 2>&1 | tee "$log" || verdict=1
  local summary total failures skips
  summary="$(grep -E '% tests passed, [0-9]+ tests? failed out of [0-9]+' "$log" || true)"
  if [[ -z "$summary" ]]; then
    failed=$((failed + 1))  # ctest itself gave up
    return 1
  fi
  read -r failures total < <(sed -E 's/.*, ([0-9]+) tests? failed out of ([0-9]+).*/\1 \2/' <<<"$summary")
  skips="$(grep -cF '***Skipped' "$log" || true)"
  passed=$((passed + total - failures - skips))
  failed=$((failed + failures))
  skipped=$((skipped + skips))
  return "$verdict"
}

mkdir -p "$logs"
step "packages"
scripts/setup.sh build window test
step "format and layers"
cmake/check_format.sh
/usr/bin/python3 cmake/check_layers.py
configure_and_build release
configure_and_build asan --target asan_part

verdict=0
run_tests release || verdict=1
run_tests asan -L asan || verdict=1
printf '\n%d skipped for want of material\n%d passed, %d failed\n' "$skipped" "$passed" "$failed"
exit "$verdict"
