#!/usr/bin/env bash
# tools/build.sh PRESET [TARGET...]: configures build/PRESET if it is new or the presets changed, then builds it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: tools/build.sh PRESET [TARGET...]}
shift

# Paths count from the build folder, so that what one checkout has compiled serves the next.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

if [[ ! build/$preset/build.ninja -nt CMakePresets.json ]]; then
  python=$(tools/python_env.sh)
  cmake --preset "$preset" ${python:+-DPython_EXECUTABLE="$python"}
fi
cmake --build "build/$preset" --parallel "$(nproc)" ${1:+--target "$@"}
