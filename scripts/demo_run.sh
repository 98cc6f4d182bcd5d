#!/bin/bash
# Trains a character GPT on text, shows what it learnt and where everything is. Run by ./demo.sh.
# Usage: scripts/demo_run.sh [--text FILE] [--steps N] [--time-limit TIME]
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
trainscope="$root/build/release/bin/trainscope"
text=""
steps=3000
# A busy machine trains fewer steps instead of longer.
time_limit=120s

usage() {
  echo "usage: ./demo.sh [--text FILE] [--steps N] [--time-limit TIME]" >&2
  exit 2
}

while [[ $# -gt 0 ]]; do
  case "$1" in
    --text) [[ $# -ge 2 ]] || usage; text="$2"; shift 2 ;;
    --steps) [[ $# -ge 2 ]] || usage; steps="$2"; shift 2 ;;
    --time-limit) [[ $# -ge 2 ]] || usage; time_limit="$2"; shift 2 ;;
    *) usage ;;
  esac
done
if [[ -n "$text" && ! -r "$text" ]]; then
  echo "demo: cannot read the text file $text" >&2
  exit 6
fi

# The project's own sources in one file, in a fixed order, plain ASCII.
own_sources() {
  cd "$root"
  find . \( -path ./build -o -path ./runs -o -path ./.git -o -path ./.cache \) -prune -o \
       -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.md' \) -print0 |
    LC_ALL=C sort -z | xargs -0 cat | LC_ALL=C tr -cd '\n -~'
}

count_characters() { { LC_ALL=C.UTF-8 grep -ao . "$1"; echo newline; } | LC_ALL=C sort -u | wc -l; }

number=1
while [[ -e "$root/runs/demo-$number" ]]; do number=$((number + 1)); done
folder="$root/runs/demo-$number"
mkdir -p "$folder"
if [[ -n "$text" ]]; then cp "$text" "$folder/text.txt"; else own_sources >"$folder/text.txt"; fi
vocabulary="$(count_characters "$folder/text.txt")"
echo "demo: $(wc -c <"$folder/text.txt") bytes of text, $vocabulary different characters"

"$trainscope" model gpt2 --layers 4 --heads 4 --embedding 128 --context 64 --no-bias \
  --vocab "$vocabulary" --seed 1 -o "$folder/model.onnx"
echo "demo: some seconds for what this machine reaches, which ops are held against"
"$trainscope" doctor --roofs --out "$folder/machine.json" >/dev/null
"$trainscope" train "$folder/model.onnx" --machine "$folder/machine.json" --data "text:$folder/text.txt" --batch 12 --seq 64 \
  --steps "$steps" --lr 1e-3 --schedule cosine --warmup "$((steps < 200 ? steps / 2 : 100))" --min-lr 1e-4 --betas 0.9,0.99 \
  --weight-decay 0.1 --decay matrices --clip 1.0 --seed 1 --time-limit "$time_limit" --run-dir "$folder/run" \
  --profile steps=101:130
echo
echo "demo: where the time of steps 101 to 130 went:"
"$trainscope" query "$folder/run" --by op --top 5 ||
  echo "demo: too few steps for a profile" >&2
"$trainscope" report "$folder/run" >/dev/null
advice="$("$trainscope" advise "$folder/run" -q | head -1)" || advice=""
echo
echo "demo: what it writes by now:"
"$trainscope" eval "$folder/run" --sample 400
echo
echo "demo: trained model  $folder/run/model.onnx   (ONNX, ready for inference)"
echo "demo: run            $folder/run"
echo "demo: look at it by  build/release/bin/trainscope inspect $folder/run"
[[ -z "$advice" ]] || echo "demo: $advice"
echo "demo: its report     $folder/run/report.html   (any browser: curves, time, memory, stages)"
echo "demo: its profile by build/release/bin/trainscope query $folder/run --by node   (docs/profiling.md)"
echo "demo: why and how by build/release/bin/trainscope advise $folder/run"
if [[ -x build/release/bin/trainscope-window ]]; then
  echo "demo: its window by  build/release/bin/trainscope gui $folder/run   (docs/gui.md)"
fi
