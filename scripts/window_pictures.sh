#!/bin/bash
# Makes the pictures of the window in docs/images from a run.
# Usage: scripts/window_pictures.sh RUN   (with a profile, as ./demo.sh makes, and roofs: train --machine FILE, which
# doctor --roofs --out FILE writes)
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
trainscope="$root/build/release/bin/trainscope"
if [[ $# -ne 1 ]]; then
  echo "usage: scripts/window_pictures.sh RUN" >&2
  exit 2
fi
shot() { "$trainscope" shot "$1" --panel window "${@:3}" -o "$root/docs/images/$2"; }

shot "$1" window.png --exec go.overview --exec overview.advise --select /h.2/mlp/c_fc
shot "$1" window-graph.png --exec go.graph --theme light
shot "$1" window-stages.png --exec go.stages
shot "$1" window-memory.png --exec go.memory --select /h.2/mlp/c_fc
"$trainscope" shot "$1" --panel budget --exec budget.1 -o "$root/docs/images/window-budget.png"
shot "$1" window-timeline.png --exec go.timeline --select /h.2/mlp/c_fc
shot "$1" window-kernels.png --exec go.kernels --select /h.2/mlp/c_fc
shot "$1" window-roofline.png --exec go.roofline --select /h.2/mlp/c_fc
