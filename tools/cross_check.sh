#!/usr/bin/env bash
# The tests of the other architecture, under emulation: aarch64 on x86_64 and x86_64 on aarch64 (Debian 12). Right for
# correctness, useless for speed. Its packages are downloaded with a package list of their own and unpacked into
# build/cross; this machine's packages stay as they are, but for the compiler and qemu.
# The last line sums up: "N passed, N failed, N skipped". XRT_CROSS_EVERY=N: every Nth case of the long suites.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case $(uname -m) in
  x86_64) other=aarch64 debian=arm64 compiler=g++-12-aarch64-linux-gnu ;;
  aarch64) other=x86_64 debian=amd64 compiler=g++-12-x86-64-linux-gnu ;;
  *) echo "cross_check: runs on x86_64 and aarch64, not on $(uname -m)" >&2 && exit 2 ;;
esac
triplet=$other-linux-gnu
work=$PWD/build/cross root=$PWD/build/cross/root
every=${XRT_CROSS_EVERY:-21}
packages=(libc6 libgcc-s1 libstdc++6 libgomp1 libgfortran5 libhwy1 libhwy-dev libdnnl2 libdnnl-dev libopenblas0-pthread
  libopenblas-pthread-dev libsqlite3-0 libsqlite3-dev ocl-icd-libopencl1 nlohmann-json3-dev libcli11-dev libgtest-dev
  libgmock-dev)

as_root=()
if ((EUID != 0)); then as_root=(sudo); fi
apt() { env DEBIAN_FRONTEND=noninteractive "$@" >&2; }
if ! command -v "$triplet-g++-12" "qemu-$other-static" >/dev/null; then
  apt "${as_root[@]}" apt-get -qq update
  apt "${as_root[@]}" apt-get -qq install -y --no-install-recommends "$compiler" qemu-user-static
fi

# What is there stays: a second run downloads nothing.
if [[ ! -e $root/complete ]]; then
  rm -rf "$work/apt" "$root"
  mkdir -p "$work"/apt/{lists/partial,cache/archives/partial,debs} "$root"
  fetch=(apt-get -qq -o APT::Architecture="$debian" -o APT::Architectures="$debian" -o APT::Sandbox::User=
    -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o Dir::State::status=/dev/null)
  apt "${fetch[@]}" update
  (cd "$work/apt/debs" && apt "${fetch[@]}" download "${packages[@]}")
  for package in "$work"/apt/debs/*.deb; do dpkg-deb -x "$package" "$root"; done
  # What the alternatives of an installed system would link.
  ln -s openblas-pthread/libopenblas.so openblas-pthread/libopenblas.a openblas-pthread/libopenblas.so.0 "$root/usr/lib/$triplet/"
  ln -s ../openblas-pthread/pkgconfig/openblas.pc "$root/usr/lib/$triplet/pkgconfig/" 2>/dev/null || true
  touch "$root/complete"
fi

export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export PKG_CONFIG_LIBDIR="$root/usr/lib/$triplet/pkgconfig:$root/usr/lib/$triplet/openblas-pthread/pkgconfig:$root/usr/share/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR=$root
cmake -S . -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1" -DXRT_WERROR=ON \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$other" -DCMAKE_CXX_COMPILER="$triplet-g++-12" \
  -DCMAKE_LIBRARY_ARCHITECTURE="$triplet" -DCMAKE_FIND_ROOT_PATH="$root" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER \
  -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
  -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$root/usr/lib/$triplet" \
  -DCMAKE_SHARED_LINKER_FLAGS="-Wl,-rpath-link,$root/usr/lib/$triplet" \
  -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-$other-static;-cpu;max;-L;$root" \
  -DXRT_CUDA=OFF -DXRT_OPENCL=OFF -DXRT_PYTHON=OFF -DXRT_BUILD_BENCH=OFF >"$work/configure.log"
cmake --build "$work/build" --parallel "$(nproc)" | tee "$work/build.log" | tail -n 3

log=$work/test.log
status=0
export QEMU_LD_PREFIX=$root
XRT_TEST_REDUCED=$every ctest --test-dir "$work/build" --output-on-failure --parallel "$(nproc)" --timeout 1800 --no-tests=error \
  -L '^(core|device|cache|registry|tune|precision|select|dispatch|graph|runtime|backends)$' >"$log" 2>&1 || status=$?
count() { grep -E '^ *[0-9]+/[0-9]+ Test +#[0-9]+: ' "$log" | grep -cE "$1" || true; }
passed=$(count ' Passed ') skipped=$(count '\*\*\*Skipped|Not Run \(Disabled\)') all=$(count '')
((status == 0)) || sed -n '/The following tests FAILED/,$p' "$log"
echo "$passed passed, $((all - passed - skipped)) failed, $skipped skipped"
exit "$status"
