#!/bin/bash
# Packs the program, its self-test, the CUDA back end and their libraries for a machine without them.
#
#   scripts/bundle.sh OUT.tar.gz|OUT.tar.xz|FOLDER [FOLDER_OR_FILE ...]
#
# What is built lies in build/release, or in the folder that BUILD names. Files and folders behind
# the first argument (models, scripts) are copied into data/. From the machine come glibc, libstdc++
# and NVIDIA's libraries, which the program finds by itself (docs/cuda.md). At most 64 MiB, packed.
set -euo pipefail

usage="usage: scripts/bundle.sh OUT.tar.gz|OUT.tar.xz|FOLDER [FOLDER_OR_FILE ...]"
[ $# -ge 1 ] || { echo "$usage" >&2; exit 2; }
out=$(realpath -m "$1")
shift
data=()
for path in "$@"; do data+=("$(realpath -e "$path")"); done
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
most_bytes=$((64 << 20))
programs=(trainscope device_self_test device_kernels_bench)

case $out in
  *.tar.gz|*.tar.xz) work=$(mktemp -d); folder=$work/trainscope; trap 'rm -rf "$work"' EXIT ;;
  *)
    folder=$out
    if [ -e "$folder" ] && [ ! -f "$folder/BUILT" ]; then
      echo "$folder is there and no bundle: name another folder" >&2
      exit 2
    fi
    rm -rf "$folder" ;;
esac
mkdir -p "$folder/bin" "$folder/lib" "$folder/data"

for program in "${programs[@]}"; do
  [ -x "$build/bin/$program" ] || { echo "$build/bin/$program is not built" >&2; exit 1; }
  strip -o "$folder/bin/$program" "$build/bin/$program"
done
if [ -f "$build/lib/libtrainscope_cuda.so" ]; then
  strip -o "$folder/lib/libtrainscope_cuda.so" "$build/lib/libtrainscope_cuda.so"
else
  echo "note: no CUDA back end is built" >&2
fi

# Everything that the programs load, but for what each machine has: the loader, glibc, g++'s.
of_the_machine='^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s|libcuda.*|libcublas.*)[.-]'
for program in "${programs[@]}"; do ldd "$build/bin/$program"; done |
  awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
  while read -r name path; do
    if ! [[ $name =~ $of_the_machine ]]; then
      strip -o "$folder/lib/$name" "$(realpath "$path")"
    fi
  done

# The programs are started by way of their libraries' folder: their files know no folder.
for program in "${programs[@]}"; do
  cat > "$folder/$program" <<'START'
#!/bin/bash
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$here/bin/$(basename "${BASH_SOURCE[0]}")" "$@"
START
  chmod +x "$folder/$program"
done
for path in "${data[@]}"; do cp -rL "$path" "$folder/data/"; done
{
  echo "commit $(git rev-parse HEAD)$(git diff --quiet HEAD || echo ' with changes')"
  echo "built on $(. /etc/os-release && echo "$PRETTY_NAME") with g++ $(g++ -dumpfullversion)"
} > "$folder/BUILT"

case $out in
  *.tar.gz) tar -C "$work" -czf "$out" trainscope; packed=$(stat -c %s "$out") ;;
  *.tar.xz) tar -C "$work" -cJf "$out" trainscope; packed=$(stat -c %s "$out") ;;
  *) packed=$(tar -C "$(dirname "$folder")" -czf - "$(basename "$folder")" | wc -c) ;;
esac
echo "$out: $((packed >> 10)) KiB packed, $(du -sk "$folder" | cut -f1) KiB unpacked"
if [ "$packed" -gt "$most_bytes" ]; then
  echo "more than $((most_bytes >> 20)) MiB: leave data out" >&2
  exit 1
fi
