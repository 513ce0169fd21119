# Two commands: `make run` measures this machine, `make test` runs every test. The rest is for development.

TARGET := $(shell rustc -vV | sed -n 's/^host: //p')
BIN := target/$(TARGET)/release/fingerpost
PROFILE ?= quick
REPORT ?= fingerpost-report.html

# The binary is linked statically (see .cargo/config.toml). Where the C library has no static version, it falls back to a dynamic one.
ifneq ($(shell printf 'int main(void){return 0;}' | cc -static -x c - -o /dev/null 2>/dev/null && echo yes),yes)
export RUSTFLAGS :=
$(info No static C library here (Fedora: glibc-static): building a dynamic binary, whose process figures are a little dearer.)
endif

.PHONY: run build test check install-test-tools clean

run: build
	$(BIN) run --profile $(PROFILE)
	$(BIN) report latest -o $(REPORT)

build:
	cargo build --release --locked

test: install-test-tools
	cargo test --workspace --locked --no-fail-fast

# What CI checks besides the tests.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

install-test-tools:
	sh tests/install-tools

clean:
	cargo clean
