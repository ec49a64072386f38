#!/usr/bin/env bash
# What `make run` shows: decisions made, explained and run on this machine, with no input needed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
xrt=.venv/bin/xrt

problems=(
  "matmul(f32[256,256], f32[256,256])"
  "matmul(f32[1,4096], f32[4096,1024])"
  "add(f32[1024,1024], f32[1024,1024])"
)

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

devices=(cpu:0)
# OpenCL is optional: a machine without a driver for it still shows the CPU.
if grep -q 'opencl:0' <<<"$("$xrt" devices)"; then devices+=(opencl:0); fi

for device in "${devices[@]}"; do
  show explain "${problems[0]} @$device"
  for problem in "${problems[@]}"; do
    show run "$problem @$device"
  done
done
printf '\nTry your own: %s explain "softmax(f32[8,1000])", or %s --help\n' "$xrt" "$xrt"
