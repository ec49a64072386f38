#!/usr/bin/env bash
# Runs every benchmark of the release build, one after the other: they share the cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
shopt -s nullglob
benchmarks=(build/release/bench/*_bench)
if ((${#benchmarks[@]} == 0)); then
  echo "run_benchmarks: build/release/bench holds none; run make build first" >&2
  exit 1
fi
for benchmark in "${benchmarks[@]}"; do
  echo "== ${benchmark##*/}"
  "$benchmark" "$@"
done
