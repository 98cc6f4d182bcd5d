#!/bin/bash
# Fails when a source file is not formatted as .clang-format says; --fix formats instead.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v clang-format-14 >/dev/null; then
  echo "check_format: clang-format-14 not found: run scripts/setup.sh test" >&2
  exit 1
fi

mode=(--dry-run -Werror)
[[ "${1:-}" == --fix ]] && mode=(-i)

# Every source of the work tree, tracked by git or not, outside build and run folders.
find . \( -path ./build -o -path ./runs -o -path ./.git -o -path ./.cache \) -prune -o \
     -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 -r -n 16 -P "$(nproc)" clang-format-14 --style=file "${mode[@]}" || {
    echo "check_format: run cmake/check_format.sh --fix" >&2
    exit 1
  }
