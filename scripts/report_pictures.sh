#!/bin/bash
# Makes the pictures of a run's report in docs/images: its top as a browser shows it at 400, 1240 and 1600 pixels.
# Usage: scripts/report_pictures.sh RUN [FOLDER]   (a run as ./demo.sh makes; pictures go to docs/images, or FOLDER)
# Needs Chromium.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
trainscope="$root/build/release/bin/trainscope"
if [[ $# -lt 1 || $# -gt 2 ]]; then
  echo "usage: scripts/report_pictures.sh RUN [FOLDER]" >&2
  exit 2
fi
to="${2:-$root/docs/images}"
if ! browser="$(command -v chromium || command -v chromium-browser || command -v google-chrome)"; then
  echo "report_pictures: there is no Chromium on this machine" >&2
  exit 1
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"$trainscope" report "$1" -o "$work/report.html" -q

light=1  # Blink's number of the light scheme
# picture NAME WIDTH HEIGHT
picture() {
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 \
    --blink-settings=preferredColorScheme=$light --user-data-dir="$work/profile" --window-size="$2,$3" \
    --screenshot="$work/$1" "file://$work/report.html" 2>"$work/browser.log" || true
  if [[ ! -s "$work/$1" ]]; then
    cat "$work/browser.log" >&2
    echo "report_pictures: the browser made no picture of $2 pixels" >&2
    exit 1
  fi
}
picture report-400.png 400 1330
picture report.png 1240 1330
picture report-1600.png 1600 1330
mkdir -p "$to"
mv "$work"/report*.png "$to/"
