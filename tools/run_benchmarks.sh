#!/usr/bin/env bash
# Runs every benchmark of the release build, one after the other: they share the cores. Decisions first, then the CPU's
# kernels, then the rest, then calls from Python. XRT_PEER_PYTHON may name a Python that has the peers: onnxruntime and
# onnx for cpu_bench, PyTorch for python_bench (there it must be the version of Python that the package was built for).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
shopt -s nullglob
folder=build/release/bench
benchmarks=()
for benchmark in "$folder"/dispatch_bench "$folder"/cpu_bench "$folder"/*_bench; do
  if [[ -x $benchmark && " ${benchmarks[*]} " != *" $benchmark "* ]]; then benchmarks+=("$benchmark"); fi
done
if ((${#benchmarks[@]} == 0)); then
  echo "run_benchmarks: $folder holds none; run make build first" >&2
  exit 1
fi
for benchmark in "${benchmarks[@]}"; do
  echo "== ${benchmark##*/}"
  "$benchmark" "$@"
done
python=${XRT_PEER_PYTHON:-.venv/bin/python}
if PYTHONPATH=build/release/python "$python" -c 'import numpy, xpuruntime' 2>/dev/null; then
  echo "== python_bench"
  PYTHONPATH=build/release/python "$python" -B bench/python_bench.py
else
  echo "== python_bench: left out, as $python cannot import NumPy and the package"
fi
