# The few commands a newcomer needs. tools/ does the work; CMakePresets.json says how each build is made.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# What `cmake --install` copies, and what run_benchmarks.sh runs: building the tests too would take long.
installed := xrt xpuruntime xpuruntime_cuda xpuruntime_opencl xrt_python
benchmarks := $(notdir $(basename $(wildcard bench/*_bench.cpp)))
.PHONY: help deps build wheel run test check bench clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):[^#]*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

deps: ## install missing packages (Debian 12; needs root or sudo)
	@tools/install_deps.sh

build: deps ## build what users get and install it into .venv
	@tools/build.sh release $(installed)
	@tools/install_venv.sh

wheel: build ## make a wheel for other Linux machines in build/dist, and test it
	@tools/make_wheel.sh

run: build ## show decisions being made, explained and run on this machine
	@tools/demo.sh

test: ## build and run all tests
	@tools/install_deps.sh test
	@tools/run_tests.sh

check: ## all tests, then the fuzz targets and the sanitizers
	@tools/install_deps.sh test
	@tools/run_tests.sh all

bench: build ## run the benchmarks; the tables come last
	@tools/build.sh release $(benchmarks)
	@tools/run_benchmarks.sh

clean: ## remove all that was built
	rm -rf build .venv
