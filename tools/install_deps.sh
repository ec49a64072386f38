#!/usr/bin/env bash
# tools/install_deps.sh [test]: installs what building needs, and with `test` what the tests need too: only what is
# missing, so that a second run costs next to nothing. XRT_SKIP_DEPS=1 leaves the machine alone.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config ccache python3 python3-venv python3-dev # the build
  nlohmann-json3-dev libcli11-dev libopenblas-pthread-dev libhwy-dev libdnnl-dev libsqlite3-dev # the library and the command
  ocl-icd-opencl-dev opencl-headers pocl-opencl-icd                     # OpenCL, and a device for it on any CPU
  libgtest-dev                                                          # configuring looks for it
)
test_packages=(
  libgmock-dev clang clang-format python3-jsonschema                    # tests, fuzzing
  python3-torch chromium                                                # an oracle; a browser for the report
  libclblast1                                                           # the kernel MATMUL_CLBLAST
)

say() { echo "install_deps: $*" >&2; }

# Without a package manager of ours the tools may still be there; CMake names a library that is not.
tools_are_here() {
  local tool absent=()
  for tool in cmake ninja g++ python3; do
    command -v "$tool" >/dev/null || absent+=("$tool")
  done
  ((${#absent[@]} == 0)) && return
  say "not found: ${absent[*]}; install them with this system's package manager and try again"
  return 1
}

# The fuzz targets link clang's own runtime, packaged under the version that `clang` stands for: 14 in Debian 12.
clang_runtime() {
  local version=14
  if ! grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; then
    version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
  fi
  echo "libclang-rt-${version:-14}-dev"
}

missing_packages() {
  local installed package
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "installed $package" <<<"$installed" || echo "$package"
  done
}

# Sets as_root to the words that make a command run as root.
become_root() {
  as_root=()
  ((EUID == 0)) && return
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
    as_root=(sudo)
    return
  fi
  say "not root and no usable sudo; have an administrator run: apt-get install $*"
  say "or set XRT_SKIP_DEPS=1 if they are installed in some other way"
  return 1
}

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >&2
}

if [[ ${XRT_SKIP_DEPS:-0} != 0 ]]; then exit 0; fi
if ! command -v apt-get >/dev/null; then
  tools_are_here
  exit
fi

if [[ ${1:-} == test ]]; then packages+=("${test_packages[@]}" "$(clang_runtime)"); fi
mapfile -t missing < <(missing_packages "${packages[@]}")
if ((${#missing[@]} == 0)); then exit 0; fi
become_root "${missing[@]}"
say "installing ${missing[*]}"
if apt update && apt install -y --no-install-recommends "${missing[@]}"; then exit 0; fi
say "apt-get could not install: ${missing[*]}"
tools_are_here
say "going on with the tools that are here"
