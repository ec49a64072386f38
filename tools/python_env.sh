#!/usr/bin/env bash
# tools/python_env.sh [test]: the Python that the package is built with, in build/env; prints its path. With `test` it
# also has what the tests need. Where packages cannot be installed nothing is printed, and the build goes on without the
# Python package. XRT_SKIP_DEPS=1 uses the python3 that is there, as it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
env=build/env

say() { echo "python_env: $*" >&2; }

if [[ ${XRT_SKIP_DEPS:-0} != 0 ]]; then
  command -v python3
  exit
fi

# Debian's own first: its headers are installed with it, and the tests use its PyTorch.
base=/usr/bin/python3
[[ -x $base ]] || base=$(command -v python3)
[[ -x $env/bin/python3 ]] || "$base" -m venv --system-site-packages "$env" >&2

# install NAME FILE [OPTION...]: what FILE lists, unless it is what was installed last time.
install() {
  cmp -s "$2" "$env/$1.installed" && return
  say "installing $(grep -v '^#' "$2" | tr '\n' ' ')"
  "$env/bin/python3" -m pip install --quiet --disable-pip-version-check "${@:3}" -r "$2" >&2 || return
  cp "$2" "$env/$1.installed"
}

if ! install build tools/python_build.txt; then
  say "these packages could not be installed: the Python package is left out"
  exit
fi
if [[ ${1:-} == test ]]; then
  install test tests/python/requirements.txt || say "tests that need one of these will be skipped"
  install models tools/models.txt --no-deps || say "tests of published models will be skipped"
fi
echo "$PWD/$env/bin/python3"
