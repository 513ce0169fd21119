# Two commands: `make run` measures this machine, `make test` runs every test. The rest is for development.

TARGET := $(shell rustc -vV | sed -n 's/^host: //p')
BIN := $(or $(CARGO_TARGET_DIR),target)/$(TARGET)/release/fingerpost
PROFILE ?= quick
REPORT ?= fingerpost-report.html

# The binary is linked statically (see .cargo/config.toml). Where the C library has no static version, it falls back to
# a dynamic one.
ifneq ($(shell printf 'int main(void){return 0;}' | cc -static -x c - -o /dev/null 2>/dev/null && echo yes),yes)
export RUSTFLAGS :=
$(info No static C library here (Fedora: glibc-static): building a dynamic binary, whose process figures are \
    a little higher.)
endif

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
OLDEST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
DIST := target/dist
ARCHIVE := fingerpost-$(VERSION)-$(TARGET)
# What a release says of its time is the commit's, as tools for packages ask.
EPOCH = $(shell git log -1 --format=%ct)

.PHONY: run build bench test bpf check check-bpf check-aarch64 msrv install-test-tools dist deb rpm image sbom deny clean

run: build
	$(BIN) run --profile $(PROFILE)
	$(BIN) report latest -o $(REPORT)

build:
	cargo build --release --locked

test: install-test-tools
	cargo test --workspace --features fingerpost/parquet --lib --bins --tests --locked --no-fail-fast

# What fits an hour of the benchmarks (bench/results list), into bench/RESULTS.md; some need root.
bench: build
	bench/results run; status=$$?; bench/results table && exit $$status

# What CI checks besides the tests.
# Looking for code in the documentation of every crate takes half a minute, and there is none that would be run: what
# begins a block says what it is. Documentation is made of what clippy has checked: with clippy's own variables, and the
# features that tests' dependencies have (there are no examples), cargo knows that it need not check every crate once
# more.
check: check-bpf
	awk 'FNR == 1 { open = 0 } /^ *\/\/[\/!] ```/ { open = !open; if (open && !/```(text|json|sh)/) { \
	    print FILENAME ":" FNR ": not run as a test; say that it is text"; bad = 1 } } END { exit bad }' \
	    $$(find crates -name '*.rs')
	bench/circles
	bench/names
	@for file in $$(grep -rl target_arch crates --include='*.rs' | sed 's,^crates/,,'); do \
	    grep -q "\`$$file\`" docs/release.md || { \
	    echo "crates/$$file has code for an architecture, and docs/release.md does not name it" >&2; bad=1; }; \
	done; exit $${bad:-0}
	cargo fmt --all --check
	cargo clippy --workspace --features fingerpost/parquet --all-targets --locked -- -D warnings
	RUSTC_WORKSPACE_WRAPPER=$$(rustc --print sysroot)/bin/clippy-driver \
	    CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ \
	    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --features fingerpost/parquet --no-deps --lib --bins --examples --locked

# The programs for the kernel, of which the objects are committed: with Debian 12's clang-14 and llvm-14.
bpf:
	bpf/make

# Whether the objects are what the sources make, where there is the compiler that made them; in CI there is.
check-bpf:
	@command -v clang-14 > /dev/null && command -v llvm-objcopy-14 > /dev/null || { \
	    echo "clang-14 and llvm-14 are not here: bpf/*.o not checked" >&2; [ "$$CI" != true ]; exit; }; \
	made=$$(mktemp -d) && trap 'rm -rf "$$made"' EXIT && bpf/make "$$made" && for object in bpf/*.bpf.o; do \
	    cmp "$$object" "$$made/$${object#bpf/}" || { \
	    echo "$$object is not what its source makes: make bpf" >&2; exit 1; }; done

# As far as another architecture can be checked here: rustup target add aarch64-unknown-linux-gnu; apt install
# gcc-aarch64-linux-gnu.
check-aarch64:
	cargo check --workspace --all-targets --locked --target aarch64-unknown-linux-gnu

# The oldest compiler that builds this, where it is installed.
msrv:
	@cargo +$(OLDEST) --version > /dev/null 2>&1 || { \
	    echo "Rust $(OLDEST) is not here: rustup toolchain install $(OLDEST) --profile minimal" >&2; exit 2; }
	cargo +$(OLDEST) check --workspace --locked

install-test-tools:
	sh tests/install-tools

# What a release is made of (docs/release.md). `dist` needs nothing but what `build` needs, and begins anew: name all
# that is wanted in one call, as `make deb rpm image sbom`.
dist:
	cargo build --release --locked --features fingerpost/parquet
	rm -rf $(DIST) && mkdir -p $(DIST)/man $(DIST)/$(ARCHIVE)
	$(BIN) completions bash > $(DIST)/fingerpost.bash
	$(BIN) completions zsh > $(DIST)/_fingerpost
	$(BIN) completions fish > $(DIST)/fingerpost.fish
	$(BIN) man --dir $(DIST)/man
	bench/notices $(TARGET) > $(DIST)/THIRD-PARTY-LICENSES
	cp -r $(BIN) README.md CHANGELOG.md SECURITY.md LICENSE-MIT LICENSE-APACHE docs $(DIST)/man \
	    $(DIST)/THIRD-PARTY-LICENSES $(DIST)/fingerpost.bash $(DIST)/_fingerpost $(DIST)/fingerpost.fish \
	    $(DIST)/$(ARCHIVE)/
	tar -C $(DIST) --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(EPOCH) \
	    -czf $(DIST)/$(ARCHIVE).tar.gz $(ARCHIVE)
	cd $(DIST) && sha256sum $(ARCHIVE).tar.gz > SHA256SUMS && cat SHA256SUMS

# The binary is the archive's: it has no symbols, and is not to be stripped once more.
deb: dist
	printf '%s\n' 'fingerpost ($(VERSION)-1) unstable; urgency=medium' '' '  * See CHANGELOG.md beside this file.' '' \
	    " -- $$(sed -n 's/^maintainer = "\(.*\)"/\1/p' crates/fingerpost/Cargo.toml)  $$(date -uRd @$(EPOCH))" \
	    > $(DIST)/changelog
	SOURCE_DATE_EPOCH=$(EPOCH) cargo deb -p fingerpost --no-build --no-strip --target $(TARGET) --output $(DIST)/
	cd $(DIST) && sha256sum *.deb >> SHA256SUMS

rpm: dist
	SOURCE_DATE_EPOCH=$(EPOCH) cargo generate-rpm -p crates/fingerpost --target $(TARGET) --output $(DIST)/
	cd $(DIST) && sha256sum *.rpm >> SHA256SUMS

# The binary, the licences and a directory for temporary files: it needs no other file. With podman or docker.
image: dist
	mkdir -p $(DIST)/image/licenses && mkdir -m 1777 $(DIST)/image/tmp && cp $(BIN) $(DIST)/image/
	cp LICENSE-MIT LICENSE-APACHE $(DIST)/THIRD-PARTY-LICENSES $(DIST)/image/licenses/
	$(or $(CONTAINER),podman) build -t fingerpost:$(VERSION) -f Containerfile $(DIST)/image
	$(or $(CONTAINER),podman) save -o $(DIST)/$(ARCHIVE)-image.tar fingerpost:$(VERSION)
	cd $(DIST) && sha256sum $(ARCHIVE)-image.tar >> SHA256SUMS

# One list for each crate beside its Cargo.toml; the binary's is published, without where it was built.
sbom: dist
	SOURCE_DATE_EPOCH=$(EPOCH) cargo cyclonedx --format json --spec-version 1.5 --no-build-deps --target $(TARGET)
	sed 's,$(CURDIR),.,' crates/fingerpost/fingerpost.cdx.json > $(DIST)/$(ARCHIVE).cdx.json
	rm -f crates/*/*.cdx.json
	cd $(DIST) && sha256sum $(ARCHIVE).cdx.json >> SHA256SUMS

# First what needs no network but the registry, then the advisories, which are fetched from github.com.
deny:
	cargo deny --locked check --hide-inclusion-graph licenses bans sources
	cargo deny --locked check advisories

clean:
	cargo clean
