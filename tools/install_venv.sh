#!/usr/bin/env bash
# Installs the release build into .venv, where a command and a Python package can live side by side.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ -x .venv/bin/python3 ]] || python3 -m venv .venv
cmake --install build/release --prefix .venv >build/release/install.log
