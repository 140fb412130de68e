# Everything here needs Go and nothing else. Tools are pinned, fetched through
# the module proxy and built on first use.

GO       ?= go
FUZZTIME ?= 10s

GOLANGCI_LINT = $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# go test, but nothing that was skipped or not checked stays unsaid, and every
# hostile case of docs/cases.txt must have been tested.
GOTEST  = $(GOTESTS) -cases docs/cases.txt
GOTESTS = $(GO) run ./internal/gotest

# The race detector needs a C compiler; go says 0 where it found none.
ifeq ($(shell $(GO) env CGO_ENABLED),1)
RACE = -race
endif

.PHONY: help
help: ## say what there is
	@sed -n 's/^\([a-z0-9-]*\):.*## /  make \1	/p' Makefile

.PHONY: build
build: ## build bin/carton-oci
	$(GO) build -trimpath -o bin/ ./cmd/carton-oci

.PHONY: docs
docs: ## write docs/commands.md, from what --help shows
	$(GO) run ./cmd/carton-oci __pages markdown docs/commands.md

.PHONY: man
man: ## write man pages to bin/man, and scripts of completion to bin/completion
	$(GO) run -trimpath ./cmd/carton-oci __pages man bin/man/man1
	$(GO) run -trimpath ./cmd/carton-oci __pages completion bin/completion

.PHONY: demo
demo: build ## take a small trained model through everything once
	CARTON_OCI=$(CURDIR)/bin/carton-oci examples/quickstart/run.sh

# The tests of this module, and of the two that need real servers. The binary under
# test is built by the tests, which go's cache of test results does not know of:
# hence -count=1.
UNIT = $(VET) -timeout=25m ./...
E2E  = -C e2e $(VET) -count=1 -timeout=25m ./... -- -C e2e/kubernetes $(VET) -count=1 ./manifest

# Where things happen at once: the packages that import sync or what is built of it.
# With -short their heavy tests are left out, which the race detector makes five to
# ten times as dear; make race has them.
CONCURRENT = $(shell $(GO) list -f '{{.ImportPath}} {{.Imports}}' ./... | \
	awk '/[ [](sync|sync\/atomic|golang.org\/x\/sync\/[a-z]+)[] ]/ { sub("^github.com/carton-oci/carton-oci", "."); print $$1 }')
RACES      = $(if $(RACE),-- $(RACE) $(VET) -short -timeout=25m $(CONCURRENT))

.PHONY: test
test: VET = -vet=off # the target vet does more
test: vet c-compiler ## vet, unit tests, scripts of the command line, e2e against a real registry, races
	$(GOTEST) $(UNIT) $(RACES) --beside $(E2E)

.PHONY: vet
vet:
	$(GO) vet ./...
	$(GO) -C e2e vet ./...
	$(GO) -C e2e vet -tags=cosign,sigstorejs .
	$(GO) -C e2e/kubernetes vet ./...
	$(GO) -C e2e/readers vet .

.PHONY: c-compiler
c-compiler:
ifndef RACE
	@echo "no C compiler here: testing without the race detector"
endif

.PHONY: unit
unit: ## the tests of this module, without the race detector
	$(GOTEST) $(UNIT)

.PHONY: race
race: c-compiler ## the tests of this module, all of them under the race detector
	$(GOTEST) $(RACE) -timeout=60m ./...

.PHONY: e2e
e2e: ## the built binary against real servers
	$(GOTEST) $(E2E)

# Debian: apt-get install runc conmon gcc libc6-dev iproute2; erofs-utils from Debian 13 on.
.PHONY: e2e-cri
e2e-cri: ## pods on a real containerd and CRI-O, with models as volumes (root, runc, conmon, cc, ip; 5 to 15 minutes)
	$(GOTEST) -C e2e/kubernetes -count=1 -timeout=30m ./cri

# The same test as in make test, with a model of PEERS_BYTES. It counts bytes.
# Debian: apt-get install iproute2.
PEERS_BYTES ?= 1073741824

.PHONY: e2e-peers
e2e-peers: ## nodes that have a model of 1 GiB from each other, with the registry gone (root, ip; 4 minutes)
	CARTON_OCI_PEERS_BYTES=$(PEERS_BYTES) $(GOTESTS) -C e2e -count=1 -timeout=30m -v -run=TestNodesHaveModelsFromEachOther .

.PHONY: bench-nodes
bench-nodes: ## what a pod waits for: image volumes and an init container (root; 20 minutes; 10 GB of disk)
	$(GO) -C e2e/kubernetes test -run='^$$' -bench=ColdStart -benchtime=3x -timeout=60m ./cri

# Signatures judged by cosign, which takes some minutes to build, once.
.PHONY: e2e-cosign
e2e-cosign: ## sign for cosign, and verify what it signed (builds cosign)
	$(GOTESTS) -C e2e -tags=cosign -count=1 -timeout=30m -run=Cosign .

# Debian: apt-get install nodejs npm. The packages come from npm.
.PHONY: e2e-sigstore-js
e2e-sigstore-js: ## what we sign, judged by sigstore's implementation in JavaScript (nodejs, npm)
	$(GOTESTS) -C e2e -tags=sigstorejs -count=1 -timeout=10m -run=SigstoreJS .

# Debian: apt-get install nodejs npm. The package comes from npm, once.
HUB_BYTES ?= 21474836480

.PHONY: e2e-hub
e2e-hub: ## the hub's own client against the hub of the tests; 20 GiB from it, and ended at half (nodejs, npm; twenty minutes)
	CARTON_OCI_HUB_BYTES=$(HUB_BYTES) $(GOTESTS) -C e2e -count=1 -timeout=60m -v -tags hubclient -run=Hub .

.PHONY: e2e-readers
e2e-readers: ## what --shard writes, read by other people's programs: Go modules, the hub's from npm, llama.cpp (nodejs, npm; two minutes)
	$(GOTESTS) -C e2e/readers -count=1 -timeout=30m .

# What is hostile, or fails, all of it: every case of docs/cases.txt, every n-th
# system call for every n, and many more transfers than make test tries. Its figures
# are those of docs/reliability.md. Debian: apt-get install strace.
CHAOS_TRIALS ?= 500
CHAOS_SEED   ?= 1
# The end-to-end tests that cases.txt names, and those of transfers that are ended.
CHAOS_E2E     = $(shell awk '$$3 == "e2e" { sub("/.*", "", $$4); if (!seen[$$4]++) printf "%s|", $$4 }' docs/cases.txt)Killed|Interrupted

.PHONY: chaos
chaos: ## hostile cases, faults and kills, all of them (root and strace for all; some ten minutes)
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; failed=0; \
	export CARTON_OCI_SWEEP=1 CARTON_OCI_TRIALS=$(CHAOS_TRIALS) CARTON_OCI_SEED=$(CHAOS_SEED); \
	for where in "./..." "-C e2e -timeout=60m -run=$(CHAOS_E2E) ."; do \
		set -- $$where; dir=; if [ "$$1" = -C ]; then dir="-C e2e"; shift 2; fi; \
		{ $(GOTEST) $$dir -count=1 "$$@" && echo chaos-ok; } 2>&1 | tee -a "$$log" | grep -v '^chaos-ok$$'; \
	done; \
	failed=$$((2 - $$(grep -c '^chaos-ok$$' "$$log"))); \
	awk -v failed=$$failed '/^(hostile cases|CHECKED):/ { for (i = 2; i <= NF; i++) { \
		if ($$i ~ /^passed/) passed += $$(i - 1); if ($$i ~ /^failed/) failed += $$(i - 1) } } \
		END { printf "%d passed, %d failed\n", passed, failed; exit failed > 0 }' "$$log"

# staticcheck and gofumpt are part of golangci-lint: .golangci.yml asks for all
# that they say. fmt looks at every file there is, of every system and tag.
.PHONY: lint
lint: ## golangci-lint: gofumpt, staticcheck, import arrows and more
	$(GOLANGCI_LINT) fmt --diff
	$(GOLANGCI_LINT) run --allow-parallel-runners ./...
	cd e2e && $(GOLANGCI_LINT) run --allow-parallel-runners --config ../.golangci.yml ./...
	cd e2e/kubernetes && $(GOLANGCI_LINT) run --allow-parallel-runners --config ../../.golangci.yml ./...
	cd e2e/readers && $(GOLANGCI_LINT) run --allow-parallel-runners --config ../../.golangci.yml ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s)
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$pkg; \
		done; \
	done

# More of what make test does with CARTON_OCI_TRIALS's own numbers: commands that
# are killed and run again, uploads that lose their process.
SOAK_TRIALS ?= 1000

.PHONY: soak
soak: ## 1,000 killed pushes and pulls, each run again and compared (half an hour)
	CARTON_OCI_TRIALS=$(SOAK_TRIALS) $(GOTESTS) -C e2e -count=1 -timeout=3h -run=Killed .
	CARTON_OCI_TRIALS=$(SOAK_TRIALS) $(GOTESTS) -count=1 -timeout=1h -run=KillAndResume ./pkg/registry

# BENCH takes flags of e2e/bench: make bench BENCH='-only push,pull -pairs 3'.
.PHONY: bench
bench: ## write docs/benchmarks.md: beside curl, oras-go and skopeo (an hour; 16 GB of disk)
	$(GO) -C e2e run ./bench $(BENCH)

# The library's tests on processors that are not this machine's: arm64, and s390x, whose
# bytes are the other way round. Goldens are among them. -short leaves out repetitions,
# and what hashes hundreds of MiB. What needs a program of the machine (python3,
# strace) runs that as it is; what needs a file of the tests' machine says so, and so
# does what would start itself again, where no binfmt_misc does that. TestFS compares
# times of files, which have no nanoseconds in qemu 7.2's fstat of s390x.
# Debian: apt-get install qemu-user.
ARCHS         ?= arm64 s390x
ARCH_PACKAGES ?= ./internal/... ./pkg/carton/... ./pkg/convert/... ./pkg/inspect/... ./pkg/layout/... ./pkg/links/... ./pkg/modelfile/... ./pkg/pack/... ./pkg/signature/...

.PHONY: test-arch
test-arch: ## the library's tests on arm64 and s390x, under qemu-user (some 40 minutes of processor time)
	@set -e; gotest=$$(mktemp); trap 'rm -f "$$gotest"' EXIT; $(GO) build -o "$$gotest" ./internal/gotest; \
	for arch in $(ARCHS); do \
		emulator=$$(command -v qemu-$$(echo $$arch | sed 's/arm64/aarch64/')) || { echo "make test-arch needs qemu-user"; exit 1; }; \
		echo "$$arch"; \
		GOARCH=$$arch CGO_ENABLED=0 "$$gotest" -short -count=1 -timeout=90m -skip='^TestFS$$' -exec="$$emulator" $(ARCH_PACKAGES); \
	done

# Debian: apt-get install wine64 gcc-mingw-w64-x86-64. What wine lacks, and the tests
# that need it, stand in the script.
.PHONY: test-windows
test-windows: ## the library's tests as a Windows program, under wine
	.ci/test-windows

.PHONY: vet-systems
vet-systems: ## compile and vet everything for macOS and Windows, tests too
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) vet ./...

# A tag that is not there yet is tried: make release-dry-run VERSION=v0.2.0-rc.1.
# Debian: apt-get install skopeo qemu-user (the programs for the other architecture
# are run too).
VERSION ?= v0.1.0

.PHONY: release-dry-run
release-dry-run: ## all of a release but the upload, of HEAD, in dist/; made twice, compared and run
	$(GO) -C e2e run ./release -version $(VERSION) -o $(CURDIR)/dist
	CARTON_OCI_RELEASE=$(CURDIR)/dist $(GOTESTS) -C e2e -count=1 -timeout=60m ./release

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist
