#!/bin/bash
# Installs what the build needs, builds trainscope and trains a character GPT for two minutes at most.
# Usage: ./demo.sh [--text FILE]   without a file it reads the project's own sources
set -euo pipefail
cd "$(dirname "$0")"

scripts/setup.sh build window
mkdir -p build
configure=(cmake --preset release)
# A tree that already builds its tests keeps them; a new one needs no test packages.
if ! grep -qs '^TRAINSCOPE_TESTS:BOOL=ON' build/release/CMakeCache.txt; then
  configure+=(-DTRAINSCOPE_TESTS=OFF)
fi
"${configure[@]}" >build/configure.log || {
  cat build/configure.log
  exit 1
}
cmake --build --preset release -j "$(nproc)" --target trainscope
exec scripts/demo_run.sh "$@"
