#!/bin/bash
# What a machine with a GPU says, in stages, each with its own limit of time: floors by small CUDA
# programs, PyTorch's speed, traces, CUPTI's records, bits of approximate functions, and ours.
# Usage: scripts/gpu.sh RESULTS [--work FOLDER] [--bundle FOLDER] [--seconds N] [--limit N] [--toy]
#        [--device cuda|cpu] [--peer-device cuda|cpu] [STAGE...]
#   RESULTS   takes gpu.json, gpu.md and gpu.tar.gz, written anew after every stage, and
#             functions.tar.gz: distances of approximate functions from the right results
#   --work    programs, logs, what each stage printed (/tmp/gpu-work); a stage that is done there, of
#             this commit, devices and sizes, is not run again
#   --bundle  our own programs, which the stages from self_test to profiles run: what bundle.sh
#             packed, with models in data/, or build/release/bin
#   --seconds of all stages together (480); a stage begins if half its own limit is left
#   --limit   of each stage, whatever its own, which is at most 480 (none)
#   --toy     sizes that a CPU runs in seconds, to try the script
#   --device  of our programs (cuda); cpu: at toy sizes
#   --peer-device  of PyTorch's stages (that of --device)
# Stages: those named, else all of DEFAULT_STAGES below, in that order. What needs a GPU, nvcc or
# PyTorch where there is none says so. bench/gpu/results.py merges the gpu.json of several calls.
# PYTHON: the interpreter that has PyTorch (python3). COMMIT: of the sources, where git is not.
set -uo pipefail

DEFAULT_STAGES=(environment build warm functions fragments matmul_bits traces activity counters
  warmed launches bandwidth matmuls activity_overhead attention ops self_test verify
  peers_g1 peers_g3 peers_g1_f32 peers_g1_tuned peers_g3_tuned train ours ours_g3 ours_g5 profiles ours_g4)
# Seconds; 60 where a stage is not named.
declare -A LIMITS=([build]=400 [warm]=5 [warmed]=150 [functions]=90 [matmuls]=150 [traces]=100
  [peers_g1]=150 [peers_g3]=150 [peers_g1_f32]=60 [peers_g1_tuned]=160 [peers_g3_tuned]=160
  [peers_g2]=240 [peers_g4]=240 [peers_g5]=240 [peers_g3_variants]=240 [self_test]=180
  [verify]=240 [train]=180 [ours]=240 [ours_g3]=240 [ours_g4]=480 [ours_g5]=240 [profiles]=180)
PROGRAMS=(launches bandwidth matmuls matmul_bits functions fragments activity counters)

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
sources="$root/bench/gpu"
python="${PYTHON:-python3}"
inside=""
results="" work=/tmp/gpu-work bundle="" seconds=480 most="" device=cuda peer_device="" toy=""
stages=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --work) work="$2"; shift 2 ;;
    --bundle) bundle="$2"; shift 2 ;;
    --seconds) seconds="$2"; shift 2 ;;
    --limit) most="$2"; shift 2 ;;
    --toy) toy=toy; shift ;;
    --device) device="$2"; shift 2 ;;
    --peer-device) peer_device="$2"; shift 2 ;;
    --inside) inside="$2"; shift 2 ;;  # this script's own call of one stage
    -*) echo "gpu.sh: unknown option $1" >&2; exit 2 ;;
    *) if [[ -z "$results" ]]; then results="$1"; else stages+=("$1"); fi; shift ;;
  esac
done
if [[ -z "$results" ]]; then
  sed -n '4,${/^#/!q; s/^# //p}' "$0" >&2
  exit 2
fi
peer_device="${peer_device:-$device}"
[[ "$device" != cpu ]] || toy=toy
[[ ${#stages[@]} -gt 0 ]] || stages=("${DEFAULT_STAGES[@]}")
mkdir -p "$results" "$work/bin" "$work/files" || exit 1
export TORCHINDUCTOR_CACHE_DIR="$work/inductor" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

absent() { printf '{"kind": "absent", "what": "%s", "why": "%s"}\n' "$1" "${2//[\"\\]/ }"; }

# Folders where CUDA's libraries or headers may lie: those that PyTorch uses before the toolkit's.
cuda_folders() {
  local kind="$1" packages
  packages="$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')"
  local found=("$packages"/nvidia/cu13/"$kind" "$packages"/nvidia/*/"$kind") folder
  for folder in /usr/local/cuda "$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")"; do
    found+=("$folder/${kind}64" "$folder/$kind" "$folder/extras/CUPTI/${kind}64"
      "$folder/extras/CUPTI/$kind")
  done
  for folder in "${found[@]}"; do [[ -d "$folder" ]] && echo "$folder"; done
}

# The first of those folders that holds the file.
folder_of() {
  local folder
  while read -r folder; do
    if [[ -e "$folder/$2" ]]; then
      echo "$folder"
      return
    fi
  done < <(cuda_folders "$1")
}

libraries_of() {
  case "$1" in
    matmuls | matmul_bits) echo "libcublasLt.so.13" ;;
    activity | counters) echo "libcupti.so.13" ;;
  esac
}

header_of() {
  case "$1" in
    matmuls | matmul_bits) echo "cublasLt.h" ;;
    activity | counters) echo "cupti.h" ;;
  esac
}

# The toolkit's own headers come first: those of other folders only where it has none.
compile() {
  local name="$1" library header folder options=()
  library="$(libraries_of "$name")"
  header="$(header_of "$name")"
  if [[ -n "$library" ]]; then
    folder="$(folder_of lib "$library")"
    [[ -n "$folder" ]] || { absent "$name" "no $library"; return; }
    options+=("-L$folder" "-l:$library" -Xlinker "-rpath=$folder")
    folder="$(folder_of include "$header")"
    [[ -n "$folder" ]] || { absent "$name" "no $header"; return; }
    options+=(-isystem "$folder")
  fi
  nvcc -O3 -std=c++20 -arch="${CUDA_ARCH:-sm_90a}" --extended-lambda "-I$root" \
    -o "$work/bin/$name" "$sources/$name.cu" "${options[@]}" >"$work/build-$name.log" 2>&1 ||
    absent "$name" "$(grep -m1 -E 'error|cannot' "$work/build-$name.log")"
}

stage_environment() { "$python" "$sources/environment.py"; }

stage_build() {
  local name
  if ! command -v nvcc >/dev/null; then
    absent "programs" "no nvcc"
    return
  fi
  for name in "${PROGRAMS[@]}"; do
    rm -f "$work/bin/$name"
    while [[ "$(jobs -r | wc -l)" -ge "$(nproc)" ]]; do wait -n; done
    compile "$name" &
  done
  wait
  for name in "${PROGRAMS[@]}"; do
    [[ -x "$work/bin/$name" ]] && echo "{\"kind\": \"built\", \"program\": \"$name\"}"
  done
  return 0
}

program() {
  local name="$1"
  shift
  if [[ -x "$work/bin/$name" ]]; then
    "$work/bin/$name" "$@"
  else
    absent "$name" "not built"
  fi
}

stage_launches() { program launches; }
stage_bandwidth() { program bandwidth; }
stage_matmuls() { program matmuls; }
stage_matmul_bits() { program matmul_bits; }
stage_functions() {
  mkdir -p "$work/distances"
  program functions "$work/distances"
  tar -C "$work" -czf "$results/functions.tar.gz" distances
}
stage_fragments() { program fragments "$work/files"; }
stage_activity() {
  local level
  for level in L1 L2 "whole graphs" "L2 all calls" "L2 driver" "L2 all driver"; do
    program activity records "$level" "$work/files"
  done
}
stage_activity_overhead() {
  local level
  for level in L1 "L2 all calls" "L2 driver" "whole graphs"; do program activity overhead "$level"; done
}
stage_counters() { program counters; }

# Seconds at most (0: no limit), a script, its words: runs it with the device of PyTorch's stages, or
# says why PyTorch is not there.
with_torch() {
  local limit="$1" script="$2" why command
  shift 2
  why="$("$python" -c '
from importlib import metadata
try:
    version = metadata.version("torch")
    if tuple(map(int, version.split(".")[:2])) < (2, 5):
        print(f"PyTorch {version} is older than 2.5")
except metadata.PackageNotFoundError:
    print("PyTorch is not installed")')"
  if [[ -n "$why" ]]; then
    absent "$script ${*//"$work"/WORK}" "$why"
    return
  fi
  command=("$python" "$sources/$script" "$@" --device "$peer_device")
  [[ "$limit" -eq 0 ]] || command=(timeout -k 5 "$limit" "${command[@]}")
  "${command[@]}"
}
stage_traces() { with_torch 0 traces.py "$work/files"; }
stage_attention() { with_torch 0 attention.py ${toy:+--toy}; }
stage_ops() { with_torch 0 ops.py ${toy:+--toy}; }

# One process a peer, so that one that fails or hangs takes no other with it.
peer() {
  local limit="$1" status
  shift
  with_torch "$limit" peers.py "$@" ${toy:+--toy --steps 2 --warm-up 1}
  status=$?
  [[ $status -eq 0 ]] || absent "peers.py $*" "exit code $status after at most $limit s"
}

# Compiles what peers_g1 and peers_g3 time, beside stages that time nothing.
stage_warm() {
  rm -f "$work/warm.pid" "$work/warm.out"
  [[ "$peer_device" == cpu ]] && { absent "warm" "only for a GPU"; return; }
  (
    for workload in g1 g3; do
      with_torch 140 peers.py "$workload" --mode default --steps 1 --warm-up 2 ${toy:+--toy}
    done
  ) >"$work/warm.out" 2>"$work/warm.err" &
  echo $! >"$work/warm.pid"
}

stage_warmed() {
  local process
  [[ -e "$work/warm.pid" ]] || { absent "warmed" "the stage warm has begun nothing"; return; }
  process="$(cat "$work/warm.pid")"
  while kill -0 "$process" 2>/dev/null; do sleep 1; done
  sed 's/"kind": "peer"/"kind": "warm_peer"/' "$work/warm.out"
}

stage_peers_g1() {
  peer 60 g1 --mode eager
  peer 110 g1 --mode default
}
stage_peers_g3() {
  peer 60 g3 --mode eager
  peer 110 g3 --mode default
}
stage_peers_g1_f32() {
  peer 50 g1 --mode eager --precision f32 --steps 10 --warm-up 3
  peer 50 g1 --mode eager --precision tf32 --steps 10 --warm-up 3
}
# Matmuls by cuBLAS alone: Triton's lost each of the 15 shapes of g1 that were tried on an H200
# (2026-11-26), and trying them takes more than the limit.
tuned() { TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS=ATEN peer 150 "$@" --mode max-autotune; }
stage_peers_g1_tuned() { tuned g1; }
stage_peers_g3_tuned() { tuned g3; }
stage_peers_g3_variants() {
  peer 60 g3 --mode eager --precision f32 --steps 10 --warm-up 3
  peer 60 g3 --mode default --optimizer lamb --accumulate 4 --steps 15 --warm-up 4
  peer 110 g3-phase2 --mode default --steps 20
}
stage_peers_g2() {
  peer 50 g2 --mode eager --steps 20
  peer 120 g2 --mode default --steps 20
}
stage_peers_g4() {
  peer 50 g4 --mode eager --steps 20
  peer 120 g4 --mode default --steps 20
}
stage_peers_g5() {
  peer 50 g5 --mode eager --steps 20
  peer 120 g5 --mode default --steps 20
}

# Ours: the programs of a bundle, or of a build's folder.
ours() {
  if [[ -n "$bundle" && -x "$bundle/trainscope" ]]; then
    "$python" "$sources/ours.py" "$1" --programs "$bundle" --device "$device" --files "$work/files" \
      ${toy:+--toy}
  else
    absent "$1" "no program trainscope in the bundle '$bundle'"
  fi
}
stage_self_test() { ours self_test; }
stage_verify() { ours verify; }
stage_train() { ours train; }
stage_ours() { ours ours; }
stage_ours_g3() { ours g3; }
stage_ours_g4() { ours g4; }
stage_ours_g5() { ours g5; }
stage_profiles() { ours profiles; }

if [[ -n "$inside" ]]; then
  "stage_$inside"
  exit
fi

commit="${COMMIT:-$(git -C "$root" rev-parse --short=10 HEAD 2>/dev/null || echo unknown)}"
# Results of another one are not of this run.
stamp="$commit:$device:$peer_device${toy:+:toy}"

collect() {
  "$python" "$sources/results.py" "$work" "$results" --commit "$commit" ${toy:+--toy} --stamp "$stamp" \
    --command "$command_line" ||
    echo "gpu.sh: results.py failed" >&2
  tar -C "$work" -czf "$results/gpu.tar.gz.part" --exclude=./bin --exclude=./inductor \
    --exclude=./distances . &&
    mv "$results/gpu.tar.gz.part" "$results/gpu.tar.gz"
}

# What a stage leaves: NAME.jsonl its lines, NAME.log its errors, NAME.done "exit code, seconds, stamp".
run_stage() {
  local name="$1" limit="${LIMITS[$1]:-60}" left=$((seconds - SECONDS)) begin=$SECONDS status of
  if [[ -e "$work/$name.done" ]] && read -r _ _ of <"$work/$name.done" && [[ "$of" == "$stamp" ]]; then
    echo "$name: done before"
    return
  fi
  if [[ "$left" -lt 8 || "$((2 * left))" -lt "$limit" ]]; then
    echo "$name: left out, $left s are left"
    return
  fi
  [[ "$limit" -le "$left" ]] || limit="$left"
  [[ -z "$most" || "$limit" -le "$most" ]] || limit="$most"
  timeout -k 5 "$limit" bash "$0" "$results" --work "$work" --bundle "$bundle" ${toy:+--toy} \
    --device "$device" --peer-device "$peer_device" --inside "$name" >"$work/$name.jsonl" 2>"$work/$name.log"
  status=$?
  echo "$name: exit code $status, $((SECONDS - begin)) s (limit $limit)," \
    "$(wc -l <"$work/$name.jsonl") lines, at $SECONDS s"
  if [[ $status -ne 0 ]]; then tail -n 3 "$work/$name.log"; fi
  echo "$status $((SECONDS - begin)) $stamp" >"$work/$name.done"
  collect
}

command_line="scripts/gpu.sh --seconds $seconds ${toy:+--toy }--device $device --peer-device $peer_device\
${bundle:+ --bundle BUNDLE} ${stages[*]}"
for stage in "${stages[@]}"; do
  if ! declare -F "stage_$stage" >/dev/null; then
    echo "gpu.sh: no stage $stage" >&2
    exit 2
  fi
done
# Clocks as the run finds them: they are read, never set.
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,temperature.gpu,power.draw,pstate \
    --format=csv -l 5 >"$work/clocks.csv" 2>&1 &
  trap 'kill '"$!"'' EXIT
fi
for stage in "${stages[@]}"; do run_stage "$stage"; done
[[ -e "$results/gpu.json" ]] || collect  # all were done before
head -n 70 "$results/gpu.md"
