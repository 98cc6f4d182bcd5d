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

# A run waits for the disk at each of its hundred files, more than it computes: tests have their
# temporary files in memory, where there is room and programs may be started from it.
files_in_memory() {
  local shared=/dev/shm least=$((8 << 20)) free  # KiB
  [[ -z "${TMPDIR:-}" && -d "$shared" && -w "$shared" ]] || return 0
  for free in "$(df --output=avail -k "$shared" | tail -n 1)" \
              "$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)"; do
    ((${free:-0} >= least)) || return 0
  done
  TMPDIR="$(mktemp -d "$shared/trainscope-tests-XXXXXX")"
  chmod 755 "$TMPDIR"  # a test starts programs in it as another user
  trap 'rm -rf "$TMPDIR"' EXIT
  cp /bin/true "$TMPDIR/true"
  if "$TMPDIR/true" 2>"$logs/files-in-memory.log"; then
    export TMPDIR
  else
    rm -rf "$TMPDIR"
    unset TMPDIR
    trap - EXIT
  fi
}

mkdir -p "$logs"
step "packages"
scripts/setup.sh build window test
step "format and layers"
cmake/check_format.sh
/usr/bin/python3 cmake/check_layers.py
configure_and_build release
configure_and_build asan --target asan_part

files_in_memory
verdict=0
run_tests release || verdict=1
run_tests asan -L asan || verdict=1
echo
sed -n 's/^-- \(CUDA: not built .*\)/\1/p' "$logs/configure-release.log"
printf '%d skipped for want of material\n%d passed, %d failed\n' "$skipped" "$passed" "$failed"
exit "$verdict"
