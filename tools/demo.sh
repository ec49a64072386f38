#!/usr/bin/env bash
# What `make run` shows, with no input needed: what is here; two blocks of models, run op by op on this machine, with each
# decision, its time and what the worst choice would cost; the same blocks tuned, locked and replayed; a Python script; a
# published model as a whole.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
xrt=.venv/bin/xrt

# Shows a command as a person would type it, then runs it.
show() {
  local word line='$ xrt'
  for word in "$@"; do
    if [[ $word == *[^a-z0-9:_-]* ]]; then word="\"$word\""; fi
    line+=" $word"
  done
  printf '\n%s\n' "$line"
  "$xrt" "$@"
}

show devices
show kernels matmul
show run "matmul(f32[256,256], f32[256,256])"
# OpenCL is optional: a machine without a driver for it still shows the CPU.
if grep -q 'opencl:0' <<<"$("$xrt" devices)"; then show run "matmul(f32[256,256], f32[256,256]) @opencl:0"; fi
show demo
# The store, the policy and the lock that tuning writes stay in build/demo for a look.
show demo --tune --store build/demo/store.sqlite --out build/demo
# The same from Python, where the package could be built.
if .venv/bin/python3 -c 'import numpy, xpuruntime' 2>/dev/null; then
  printf '\n$ python examples/choose_and_explain.py\n'
  .venv/bin/python3 examples/choose_and_explain.py
fi
# A model that people use, from a package of the registry: what it is made of, how long it takes, and what runs it.
folder=$(echo .venv/lib/python3*/site-packages/rapidocr_onnxruntime/models)
if [[ -e $folder ]]; then
  mkdir -p build/demo
  cp "$folder/ch_ppocr_mobile_v2.0_cls_infer.onnx" build/demo/text_direction.onnx
  show inspect build/demo/text_direction.onnx
  show run build/demo/text_direction.onnx --shape x=1,3,48,192
  show bench build/demo/text_direction.onnx --shape x=1,3,48,192 --budget 2s
else
  printf '\nNo whole model is shown: the packages of tools/models.txt could not be installed into .venv\n'
fi
printf '\nTry your own: %s explain "softmax(f32[8,1000])", or %s --help\n' "$xrt" "$xrt"
