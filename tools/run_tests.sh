#!/usr/bin/env bash
# tools/run_tests.sh [all]: all tests of the dev build; with `all` the fuzz targets and the sanitizers too (the Python
# package with them). A stage that fails does not stop the ones after it. The last line sums up: "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

passed=0 failed=0 skipped=0 failures=()

# Old sanitizer runtimes cannot live with much address randomisation; containers may forbid turning it off.
steady=()
if setarch -R true 2>/dev/null; then steady=(setarch -R); fi

# Counts one status among the result lines of a ctest log, such as "3/9 Test #3: core.Dims ...   Passed   0.01 sec".
count() { grep -E '^ *[0-9]+/[0-9]+ Test +#[0-9]+: ' "$2" | grep -cE "$1"; }

# A stage whose build broke counts as one failure.
build() {
  local preset=$1 log=build/$1.build.log
  shift
  mkdir -p build
  "${steady[@]}" tools/build.sh "$preset" "$@" >"$log" 2>&1 && return
  cat "$log"
  failed=$((failed + 1))
  failures+=("$preset: the build")
  return 1
}

# targets PRESET PATTERN: those of the preset's targets whose whole name matches.
targets() { ninja -C "build/$1" -t targets all | sed -nE "s/^($2): phony\$/\1/p"; }

# run_ctest PRESET [ctest arguments]
run_ctest() {
  local preset=$1 log=build/$1.test.log status ok bad skip line
  shift
  "${steady[@]}" ctest --preset "$preset" --parallel "$(nproc)" --no-tests=error "$@" >"$log" 2>&1
  status=$?
  ok=$(count ' Passed ' "$log") skip=$(count '\*\*\*Skipped|Not Run \(Disabled\)' "$log")
  bad=$(($(count '' "$log") - ok - skip))
  # ctest may fail without naming a test, for one when it finds none.
  if ((status != 0 && bad == 0)); then bad=1; fi
  if ((status != 0)) || [[ $preset == dev ]]; then
    cat "$log"
    # What of the kernels was tried on which device, and what not: ctest shows no output of tests that pass.
    grep -s '^conformance ' "build/$preset/Testing/Temporary/LastTest.log"
  fi
  while read -r line; do failures+=("$preset: $line"); done < <(
    grep -E '^ *[0-9]+/[0-9]+ Test +#' "$log" | grep -vE ' Passed |\*\*\*Skipped|Not Run \(Disabled\)' |
      sed -E 's/^[^:]*: ([^ ]+) \.* *(.*)/\1 (\2)/')
  passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
  outcome="$ok passed, $bad failed, $skip skipped"
}

# stage NAME FUNCTION [arguments]: runs it and prints its line.
stage() {
  local name=$1 start=$SECONDS
  shift
  outcome="the build failed"
  echo "== $name"
  "$@"
  echo "== $name: $outcome in $((SECONDS - start)) s"
}

fuzz() {
  local found
  # Configured first: only then are the targets known.
  build clang help || return
  mapfile -t found < <(targets clang '[a-z0-9_]*_fuzz')
  if ((${#found[@]} == 0)); then
    outcome="no fuzz targets"
    failed=$((failed + 1))
    return
  fi
  build clang "${found[@]}" && run_ctest clang -R '_fuzz$'
}

# layers PRESET LABELS [PATTERN]: builds and runs the tests of these layers alone, as all would take long. The pattern
# names targets that bear a label of theirs but are not in every build.
layers() {
  local found
  read -ra found <<<"${2//|/_tests }_tests"
  build "$1" help || return
  mapfile -t -O "${#found[@]}" found < <(targets "$1" "${3:-}")
  build "$1" "${found[@]}" && run_ctest "$1" -L "^($2)\$"
}

# python PRESET TESTS: the Python package under a sanitizer, in those of its tests that go through its own C++ code.
python() { build "$1" xrt_python && run_ctest "$1" -R "^python\\.($2)\$"; }

everything() { build dev && run_ctest dev; }

# What the tests of the Python package need is installed once, before anything is configured.
interpreter=$(tools/python_env.sh test)

stage dev everything
if [[ ${1:-} == all ]]; then
  stage fuzz fuzz
  stage asan layers asan 'core|device|cache|registry|tune|select|dispatch|graph|backends' 'opencl(_plugin)?_tests'
  stage tsan layers tsan 'device|cache|registry|tune|select|dispatch|graph|backends'
  if [[ -n $interpreter ]]; then
    stage "asan, Python" python asan 'arrays|bad_input|junk|kernels|lock|log|policy|rules|scopes|store|threads|tune'
    stage "tsan, Python" python tsan 'kernels|rules|scopes|threads'
  fi
fi

# Once more where nobody must look for it: above, a failure may stand thousands of lines up.
((${#failures[@]} == 0)) || printf 'failed: %s\n' "${failures[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
