#!/bin/bash
# Installs the Debian packages of the groups named (scripts/packages.txt); nothing when all is there.
# Usage: scripts/setup.sh build [test] [bench] [nightly]
set -euo pipefail
list="$(dirname "$0")/packages.txt"

known_groups() { awk '!/^#/ && NF == 2 {print $1}' "$list" | sort -u | tr '\n' ' '; }

if [[ $# -eq 0 ]]; then
  echo "usage: scripts/setup.sh GROUP...   (groups: $(known_groups))" >&2
  exit 2
fi

wanted=()
for group in "$@"; do
  mapfile -t packages < <(awk -v group="$group" '!/^#/ && $1 == group {print $2}' "$list")
  if [[ ${#packages[@]} -eq 0 ]]; then
    echo "setup: no package group '$group' (groups: $(known_groups))" >&2
    exit 2
  fi
  wanted+=("${packages[@]}")
done

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is not a Debian system; install these or their equals: ${wanted[*]}" >&2
  exit 1
fi

installed="$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null |
             awk '$2 == "installed" {print $1}')" || true
mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) \
                                <(sort -u <<<"$installed"))
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "setup: every package of $* is installed"
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing packages, and neither root nor sudo to install them. As root, run:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}"
