# Everything a person types. Each target does what it needs on a fresh Debian 12: scripts/setup.sh first,
# then CMake and Ninja.
BUILD := build
DEMO  := examples/candidates/gemm_bf16.md --task gemm_n7168_k5120 --workload smoke
JOBS  ?= $(shell nproc)
# One progress line on a terminal, silence elsewhere; errors always.
NINJA := ninja -C $(BUILD) -j $(JOBS) $$([ -t 1 ] || echo --quiet)

.PHONY: all build demo test format lint clean setup configure
.DEFAULT_GOAL := build
all: build

setup:
	@scripts/setup.sh

configure: setup
	@test -f $(BUILD)/build.ninja || cmake --preset default --log-level=WARNING >/dev/null

build: configure
	@$(NINJA)

demo: configure
	@echo "building ptxbench ..." >&2
	@$(NINJA) ptxbench
	$(BUILD)/bin/ptxbench eval $(DEMO)

test: build
	@ctest --test-dir $(BUILD) --output-on-failure

format:
	@scripts/setup.sh
	@scripts/check_format.sh --fix

lint:
	@scripts/setup.sh --lint
	@scripts/check_format.sh
	@scripts/lint.sh

clean:
	rm -rf $(BUILD) build-lint
