#!/usr/bin/env bash
# tools/build.sh PRESET [TARGET...]: configures build/PRESET if it is new, or the presets or the Python to build with have
# changed, then builds it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: tools/build.sh PRESET [TARGET...]}
shift

# Paths count from the build folder, so that what one checkout has compiled serves the next.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros

python=$(tools/python_env.sh)
if [[ ! build/$preset/build.ninja -nt CMakePresets.json ]] ||
  { [[ -n $python ]] && ! grep -qs "^Python_EXECUTABLE:[A-Z]*=$python\$" "build/$preset/CMakeCache.txt"; }; then
  cmake --preset "$preset" ${python:+-DPython_EXECUTABLE="$python"}
fi

log=build/$preset/last_build.log
compile() { cmake --build "build/$preset" --parallel "$(nproc)" ${1:+--target "$@"} 2>&1 | tee "$log"; }
compile "$@" && exit
grep -q 'internal compiler error' "$log" || exit 1

# g++ 12 crashes on some precompiled headers that ccache has kept: these are made anew, once.
mapfile -t headers < <(find "build/$preset" -name '*.gch' -printf '%P\n' -delete)
((${#headers[@]} == 0)) || CCACHE_RECACHE=1 ninja -C "build/$preset" "${headers[@]}"
compile "$@"
