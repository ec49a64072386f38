#!/usr/bin/env bash
# tools/build.sh PRESET [TARGET...]: configures build/PRESET if it is new or the presets changed, then builds it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: tools/build.sh PRESET [TARGET...]}
shift

if [[ ! build/$preset/build.ninja -nt CMakePresets.json ]]; then
  cmake --preset "$preset"
fi
cmake --build "build/$preset" --parallel "$(nproc)" ${1:+--target "$@"}
