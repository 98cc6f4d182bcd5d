#!/bin/bash
# Writes the tables of tests/cuda/gates that take tools of NVIDIA's: what the machine code of the CUDA back end
# consists of (sass.tsv), and which lane holds which element of matrices on tensor cores (fragments.tsv).
# ./test.sh compares both with the kernels, without these tools.
# Usage: scripts/sass_gate.sh TOOLS [LIBRARY]
#   TOOLS: a folder outside of the project with NVIDIA's disassembler and the headers of CuTe, as Python packages:
#     python3 -m venv TOOLS && TOOLS/bin/pip install --no-deps nvidia-cuda-nvdisasm nvidia-cutlass
#   LIBRARY: the back end, of all architectures that are to be looked at; build/release/lib/libtrainscope_cuda.so
# Exit code: 0: written; 2: a tool or a file is missing or not as it should be.
set -euo pipefail
if [[ $# -lt 1 || $# -gt 2 ]]; then
  echo "usage: scripts/sass_gate.sh TOOLS [LIBRARY]" >&2
  exit 2
fi
fail() { echo "sass_gate: $1" >&2; exit 2; }
tools="$(realpath -e -- "$1" 2>/dev/null)" || fail "no folder $1: make it by
  python3 -m venv $1 && $1/bin/pip install --no-deps nvidia-cuda-nvdisasm nvidia-cutlass"
library="$(realpath -e -- "${2:-$(dirname "$0")/../build/release/lib/libtrainscope_cuda.so}" 2>/dev/null)" ||
  fail "no library ${2:-build/release/lib/libtrainscope_cuda.so}"
cd "$(dirname "$0")/.."
gates=tests/cuda/gates

nvdisasm="$(find "$tools" -type f -name nvdisasm -print -quit)"
[[ -n $nvdisasm ]] || fail "no nvdisasm in $1: $1/bin/pip install --no-deps nvidia-cuda-nvdisasm"
cute="$(find "$tools" -path '*/include/cute/tensor.hpp' -print -quit)"
[[ -n $cute ]] || fail "no headers of CuTe in $1: $1/bin/pip install --no-deps nvidia-cutlass"
nvcc="$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)"
toolkit="$(dirname "$(dirname "$(realpath -- "$nvcc")")")"
[[ -f $toolkit/include/cuda_runtime.h ]] || fail "no headers of CUDA in $toolkit/include: put nvcc in PATH"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"${CXX:-g++}" -std=c++17 -isystem "${cute%/cute/tensor.hpp}" -isystem "$toolkit/include" \
  -isystem "$toolkit/include/cccl" -o "$work/fragments" "$gates/fragments.cpp" ||
  fail "$gates/fragments.cpp cannot be compiled with the headers of CuTe in $1"
"$work/fragments" >"$work/fragments.tsv" || fail "$gates/fragments.cpp fails"
scripts/sass_gate.py --update "$gates" --nvdisasm "$nvdisasm" "$library"
mv "$work/fragments.tsv" "$gates/fragments.tsv"
echo "$gates/fragments.tsv: $(grep -c $'^[^#f]' "$gates/fragments.tsv") rows"
