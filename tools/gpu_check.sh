#!/usr/bin/env bash
# Everything that needs a GPU, in one run: builds, tests on CUDA and OpenCL, looks for bad memory accesses, times.
# Logs go to $OUT, or to build/cuda/logs. The table comes last; the exit code is 1 if any step failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
build=build/cuda
logs=${OUT:-$build/logs}
mkdir -p "$logs" "$build"
failed=()
summary=()

# step NAME SECONDS COMMAND...: its output is its log; a failure is remembered and its last lines are shown.
step() {
  local name=$1 limit=$2 start=$SECONDS status
  shift 2
  timeout --kill-after=10 "$limit" "$@" >"$logs/$name.log" 2>&1
  status=$?
  summary+=("$(printf '%-18s %-8s %4d s' "$name" "$( ((status == 0)) && echo ok || echo "FAILED $status")" $((SECONDS - start)))")
  if ((status != 0)); then
    failed+=("$name")
    echo "== $name failed ($status):"
    tail -n 25 "$logs/$name.log"
  fi
  return "$status"
}

note() { summary+=("$(printf '%-18s %s' "$1" "$2")"); }

finish() {
  printf '%s\n' "" "${summary[@]}"
  [[ -s $logs/cuda_bench.log ]] && cat "$logs/cuda_bench.log"
  ((${#failed[@]} == 0)) && exit 0
  echo "gpu_check: failed: ${failed[*]}"
  exit 1
}

command -v nvcc >/dev/null || export PATH=/usr/local/cuda/bin:$PATH
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || note gpu "nvidia-smi found none"

# cuBLASLt comes with the toolkit or with PyTorch.
if ! ldconfig -p | grep -q 'libcublasLt\.so\.1[23]'; then
  found=$(find /usr/local/cuda/lib64/ "$(python3 -c 'import sys; print(sys.prefix)')" -name 'libcublasLt.so.1[23]' 2>/dev/null | head -n 1)
  if [[ -n $found ]]; then export LD_LIBRARY_PATH=${found%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
fi

# NVIDIA's OpenCL beside those that are installed.
mkdir -p "$build/icd"
cp /etc/OpenCL/vendors/*.icd "$build/icd/" 2>/dev/null
opencl=$(find /usr/local/nvidia /usr/lib /usr/lib64 -name 'libnvidia-opencl.so.1' 2>/dev/null | head -n 1)
echo "${opencl:-libnvidia-opencl.so.1}" >"$build/icd/nvidia.icd"
OCL_ICD_VENDORS=$(realpath "$build/icd")
export OCL_ICD_VENDORS

# Packages that are not installed there may be carried unpacked in .deps.
if [[ -d .deps/usr ]]; then
  deps=$PWD/.deps/usr
  libraries=$(dirname "$(find "$deps/lib" -name 'libhwy.so' | head -n 1)")
  export CMAKE_PREFIX_PATH=$deps LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

step configure 120 cmake --preset cuda || finish
step build 400 cmake --build "$build" --parallel || finish

# With the installed ICD files alone: tests of drivers count platforms.
step tests 180 env -u OCL_ICD_VENDORS ctest --test-dir "$build" --output-on-failure --timeout 120 --parallel 8 --no-tests=error \
  -L '^(core|device|registry|tune|precision|select|dispatch|graph|runtime|backends|opencl)$'
note "" "$(grep -E 'tests passed|tests failed' "$logs/tests.log" | tail -n 1)"

in_shards() {  # COUNT COMMAND...: at once
  local i status=0 pids=()
  for ((i = 0; i < $1; ++i)); do
    GTEST_TOTAL_SHARDS=$1 GTEST_SHARD_INDEX=$i "${@:2}" &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i" || status=1; done
  return $status
}
export -f in_shards
count_tests() {  # LOG: of all its shards
  local passed skipped
  passed=$(grep -oP 'PASSED  \] \K\d+' "$logs/$1.log" | awk '{n += $1} END {print n + 0}')
  skipped=$(grep -oP 'SKIPPED \] \K\d+(?= test)' "$logs/$1.log" | awk '{n += $1} END {print n + 0}')
  echo "$(grep -cE '^\[  FAILED  \].*ms' "$logs/$1.log") failed, $passed passed, $skipped skipped"
}

# A skipped test proves nothing: with a GPU here, these must have run.
cuda_tests=$build/tests/backends_tests
step cuda_tests 180 bash -c 'in_shards 8 "$@"' _ "$cuda_tests" --gtest_filter='Cuda*:*cuda_0*'
note "" "$(count_tests cuda_tests)"
if nvidia-smi -L >/dev/null 2>&1 && grep -q 'SKIPPED.*ProfileDescribesTheDevice' "$logs/cuda_tests.log"; then
  failed+=(cuda_tests_skipped)
fi
step devices 30 "$build/src/cli/xrt" devices

# Tuned on the GPU, locked, and replayed from the file.
rm -f "$build"/store.sqlite*
step tune 90 "$build/src/cli/xrt" tune --store "$build/store.sqlite" --lock "$build/gpu.lock" --budget 20s \
  "matmul(bf16[1,4096], bf16[4096,4096]) @cuda:0" "matmul(bf16[256,1024], bf16[1024,1024]) @cuda:0" \
  "matmul(bf16[8,2048], bf16[2048,2048]; transpose_b=true) @cuda:0" "add(f32[1024,1024], f32[1024,1024]) @cuda:0" \
  "matmul(f32[256,256], f32[256,256]) @opencl:0" && cat "$logs/tune.log"
step lock 60 "$build/src/cli/xrt" lock verify "$build/gpu.lock" && cat "$logs/lock.log"

if command -v compute-sanitizer >/dev/null; then
  memory='CudaMatmul.SkinnyTakes*:CudaMatmul.ReferenceTakes*:CudaMatmul.NothingTo*:CudaElementwise.AddsAnyLayout'
  step memcheck 90 compute-sanitizer --tool memcheck --error-exitcode 9 "$cuda_tests" --gtest_filter="$memory"
  step memcheck_ops 150 env XRT_TEST_REDUCED=7 compute-sanitizer --tool memcheck --error-exitcode 9 "$cuda_tests" \
    --gtest_filter='*Conformance*cuda_0*:CudaOps.RowsMayBegin*:CudaOps.AWrong*:CudaOps.Appends*'
  step racecheck 90 compute-sanitizer --tool racecheck --error-exitcode 9 "$cuda_tests" --gtest_filter='CudaMatmul.SkinnyTakes*'
  step racecheck_ops 90 compute-sanitizer --tool racecheck --error-exitcode 9 "$cuda_tests" \
    --gtest_filter='CudaOps.RowsMayBegin*:CudaOps.AWrong*'
  step initcheck 60 compute-sanitizer --tool initcheck --error-exitcode 9 "$cuda_tests" --gtest_filter='CudaMatmul.SkinnyTakes*'
else
  note sanitizer "compute-sanitizer is not installed"
fi

# The Python package, with the PyTorch that is installed here.
if [[ -d $build/python ]]; then
  export PYTHONPATH=$PWD/$build/python:$PWD/.deps/python
  for test in arrays devices explain graph lost_device scopes synchronize; do
    step "python_$test" 90 python3 -B -m unittest discover --verbose -s tests/python -p "${test}_test.py"
    note "" "$(tail -n 1 "$logs/python_$test.log")"
  done
  if nvidia-smi -L >/dev/null 2>&1 && grep -q "skipped 'the CUDA backend has no device'" "$logs/python_graph.log"; then
    failed+=(python_graph_skipped)
  fi
  step python_bench 90 python3 -B bench/python_bench.py && cat "$logs/python_bench.log"
  step cuda_bench 200 python3 -B bench/cuda_bench.py linear ops layer host --json "$logs/cuda_bench.json"
else
  note python "Python's headers or nanobind are not installed: the package was not built"
fi

# The GPU by OpenCL, beside the CPU device that comes first where PoCL is installed.
gpu=$("$build/src/cli/xrt" devices | sed -n 's/^opencl:\([0-9]*\) .* nvidia .*/\1/p' | head -n 1)
if [[ -n $gpu ]]; then
  step opencl_gpu 150 bash -c 'in_shards 8 "$@"' _ "$cuda_tests" --gtest_filter="*opencl_$gpu*" --gtest_brief=1
  note "" "$(count_tests opencl_gpu)"
  step opencl_bench 120 "$build/bench/opencl_bench" --device "$gpu" --elements 67108864 && cat "$logs/opencl_bench.log"
  step opencl_choice 60 "$build/bench/opencl_choice_bench" --device "$gpu" --quick && tail -n 4 "$logs/opencl_choice.log"
else
  note opencl_gpu "left out, with its benchmarks: xrt devices shows no OpenCL device of NVIDIA"
  note "" "$(grep -E '^(left out of|no) opencl' "$logs/devices.log" | head -n 1)"
  # As with CUDA: where a GPU and its library are, these must have run.
  if [[ -n $opencl ]] && nvidia-smi -L >/dev/null 2>&1; then failed+=(opencl_gpu_skipped); fi
fi

if [[ -x $build/bench/dispatch_bench ]]; then
  step dispatch_bench 90 "$build/bench/dispatch_bench" && cat "$logs/dispatch_bench.log"
fi
finish
