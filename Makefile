# make demo shows the product at work, make test proves it. `make` alone lists everything.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

export HELIOSTAT_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/heliostat

# One set of flags for everything: what one command compiled, no other compiles again. The race detector is the
# exception, because it needs cgo. A checkout that git does not trust, another user's for one, is built unstamped.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)
export GOWORK := off

# Programs of this checkout; two checkouts on one machine do not share them.
BIN := $(HELIOSTAT_CACHE)/checkouts/$(shell printf %s '$(CURDIR)' | sha256sum | cut -c 1-12)
TOOL := go tool -modfile=tools/go.mod

# What compiles and checks may take more memory: a tenth less work for the collector. Without inlining, which the race
# detector undoes anyway, its build takes a fifth less again.
LAVISH := 400

# NVML's adapter needs cgo, and nothing else does: with Go's own resolver and user look-up, all other packages are those that
# the pure build has compiled. The header of NVML warns of functions that nobody here calls.
nvml = CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations" go $(1) -tags nvml,netgo,osusergo

# kit judges the machine and builds what a dev cluster needs, Heliostat, and the programs of the test module that are
# named, all with progress.
kit = (cd test/devcluster && go run ./cmd/kit "Heliostat=../..:./cmd/autoscaler:$(BIN)/autoscaler" $(foreach p,$(1),"$(p)=..:./$(p):$(BIN)/$(notdir $(p))"))

# run becomes a program of the test module: signals then reach it, and not the go command.
define run
	.ci/preflight go python
	$(call kit,$(1))
	cd test
	HELIOSTAT_PROGRAM="$(BIN)/autoscaler" exec "$(BIN)/$(notdir $(1))"
endef

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

.PHONY: demo
demo: ## the whole loop on a real Ray, step by step; DEMO_EXIT=1 exits by itself
	@$(call run,demo)

# Tests with a dev cluster wait most of the time, so several run side by side, and the compiler and the linters beside them
# at the lowest priority. Dev clusters start one after the other, and as many Ray nodes at once as there are cores. Each dev cluster takes up to 3 GiB; with little memory free, LANES is 1.
LANES ?= $(shell awk '/^MemAvailable/ { print $$2 < 12 * 1024 * 1024 ? 1 : 2 }' /proc/meminfo)

# times collects the lines of go test for slowest.
times = | tee -a "$(BIN)/times"

.PHONY: test
test: ## everything that CI runs
	@.ci/preflight go python
	.ci/debian prometheus promtool chromium > /dev/null
	$(call kit)
	rm -f "$(BIN)/times"
	$(MAKE) verify
	$(MAKE) -j 2 quiet lanes
	$(MAKE) slowest

.PHONY: quiet
quiet:
	@nice -n 19 $(MAKE) neighbours
	nice -n 19 $(MAKE) lint
	nice -n 19 $(MAKE) unit
	nice -n 19 $(MAKE) image-test

# neighbours builds Kueue, Karpenter and kwok, for which test/neighbours waits.
.PHONY: neighbours
neighbours:
	@(cd test/devcluster && go run ./cmd/kit -parts "kueue karpenter kwok")

.PHONY: slowest
slowest:
	@echo "the slowest packages:"
	awk '$$1 == "ok" && $$3 ~ /^[0-9.]+s$$/ { print $$3 + 0, $$2 }' "$(BIN)/times" | sort -rn | head -n 10 |
		while read -r seconds package; do printf '%8.1f s  %s\n' "$$seconds" "$${package#heliostat.dev/heliostat/}"; done

.PHONY: check
check: ## the fast part of test: lint and unit tests without the race detector
	@.ci/preflight go
	$(MAKE) lint-root
	go test -short -vet=off ./...

# packages lists the packages of a kind that tools/concurrency knows.
packages = $$(go -C tools build -o "$(BIN)/concurrency" ./concurrency && "$(BIN)/concurrency" $(1))

.PHONY: unit
unit: ## unit, property and fuzz-seed tests; packages with concurrency run under the race detector
	@mkdir -p "$(BIN)"
	go test -vet=off -timeout 30m $(call packages,plain) $(times)
	long=($(call packages,long))
	go test -vet=off -timeout 30m -run "$${long[0]}" "$${long[@]:1}" $(times)
	CC=$$(.ci/cc "$(HELIOSTAT_CACHE)")
	export CC CGO_ENABLED=1
	$(call nvml,vet) ./pkg/gpuinfo/nvml ./cmd/autoscaler
	if [[ $$CC == *ziglang* ]]; then
		echo "without gcc or clang the tests of pkg/gpuinfo/nvml are left out: zig does not link go-nvml" >&2
	else
		$(call nvml,test) -vet=off ./pkg/gpuinfo/nvml $(times)
	fi
	GOGC=$(LAVISH) go test -race -short -vet=off -timeout 30m -gcflags=all=-l $(call packages,race) $(times)

.PHONY: agent
agent: ## the program that can ask NVIDIA's driver, for `gpus` and `agent`; it runs where there is glibc
	@CC=$$(.ci/cc "$(HELIOSTAT_CACHE)")
	export CC CGO_ENABLED=1
	if [[ $$CC == *ziglang* ]]; then
		echo "install gcc or clang: zig does not link go-nvml" >&2
		exit 1
	fi
	$(call nvml,build) -o "$(BIN)/agent/autoscaler" ./cmd/autoscaler
	echo "$(BIN)/agent/autoscaler"

.PHONY: image
image: ## the OCI image for amd64 and arm64 as a layout; IMAGE=REPOSITORY:TAG pushes it too
	@rm -rf "$(BIN)/image"
	cd tools
	go run ./image -source .. -out "$(BIN)/image" $(if $(IMAGE),-push "$(IMAGE)")

.PHONY: plugin
plugin: ## archives of kubectl-heliostat for krew (.krew.yaml)
	@for arch in amd64 arm64; do
		folder="$(BIN)/plugin/$$arch"
		GOOS=linux GOARCH=$$arch go build -ldflags='-s -w' -o "$$folder/kubectl-heliostat" ./cmd/autoscaler
		archive="$(BIN)/plugin/kubectl-heliostat_linux_$$arch.tar.gz"
		(cd tools && go run ./licenses/check -texts "$$folder/THIRD-PARTY")
		tar -czf "$$archive" -C "$$folder" kubectl-heliostat THIRD-PARTY -C "$(CURDIR)" LICENSE
		sha256sum "$$archive"
	done

.PHONY: image-test
image-test: ## the image: built twice, pushed, pulled, unpacked and run; and known vulnerabilities of the program
	@mkdir -p "$(BIN)"
	(cd tools && go test -vet=off -timeout 20m ./...) $(times)
	go build -o "$(BIN)/autoscaler" ./cmd/autoscaler
	.ci/vulnerabilities "$(BIN)/autoscaler"

.PHONY: e2e
e2e: ## the real Ray head's conformance, tests of the dev cluster, and the whole loop on it
	@.ci/preflight go python
	$(call kit)
	$(MAKE) lanes

# Each serve that these start may take as much memory as the chart lets it.
loop outages churn bench-rest: export HELIOSTAT_TEST_MEMORY ?= 1Gi

.PHONY: lanes heads cluster loop outages
lanes:
	@mkdir -p "$(BIN)"
	$(MAKE) -j $(LANES) loop outages

heads:
	@$(call conform,2.60.0)

cluster: heads
	@cd test/devcluster
	go test -vet=off -count=1 -timeout 20m -p 1 ./... $(times)

# The tests of outages kill or stop what a dev cluster shares, so they have one for themselves, beside the other tests of
# test/e2e and after those of the dev cluster. Three dev clusters at once keep two cores busy.
OUTAGES := '^Test(SharedPartsMayDie|AnUndecodableNeighbour|RequestsOfTwoOwners|ALeaderMayLoseAnAPIServer)'

loop:
	@cd test
	export HELIOSTAT_PROGRAM="$(BIN)/autoscaler"
	packages=$$(go list ./... | grep -vE '/test/(e2e|neighbours|chart)$$')
	go test -vet=off -count=1 -timeout 30m -p $(LANES) -parallel 3 -skip $(OUTAGES) ./e2e ./neighbours ./chart $$packages $(times)

outages: cluster
	@cd test
	HELIOSTAT_PROGRAM="$(BIN)/autoscaler" go test -vet=off -count=1 -timeout 30m -parallel 3 -run $(OUTAGES) ./e2e $(times)

.PHONY: lint lint-root
lint: lint-root ## vet and staticcheck for all modules, and the licenses of dependencies
	@export GOGC=$(LAVISH)
	staticcheck=$$($(TOOL) -n staticcheck)
	for module in test test/devcluster tools; do
		echo "lint $$module"
		(cd $$module && go vet ./... && "$$staticcheck" ./...)
	done
	(cd tools && go run ./licenses/check)

lint-root:
	@echo "lint ."
	unformatted=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go'))
	if [[ -n $$unformatted ]]; then
		echo "not formatted by gofmt:" $$unformatted >&2
		exit 1
	fi
	export GOGC=$(LAVISH)
	go vet ./...
	$(TOOL) staticcheck ./...

.PHONY: style
style: ## Go source within 120 columns, and phrases with a plainer word in comments and docs
	@cd tools
	go run ./style ..

.PHONY: generate
generate: ## make the generated code and manifests again
	@(cd tools && go run ./protogen -source ../api/proto -out .. -module heliostat.dev/heliostat)
	go generate ./...
	(cd test && go run ./chart/generate ../deploy)

.PHONY: verify
verify: ## fail when what is generated is not what generate makes
	@echo "verify generated code"
	before=$$(.ci/generated)
	$(MAKE) generate
	if ! diff <(echo "$$before") <(.ci/generated); then
		echo "generated code was stale; it is renewed now: commit it" >&2
		exit 1
	fi

.PHONY: bench
bench: ## Go benchmarks of a decision and of a cycle
	@go test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-loop
bench-loop: ## how long from .remote() to the patch, on a real Ray; SIDECAR=1 adds Ray's own autoscaler
	@$(call run,bench/loop)

.PHONY: bench-rest
bench-rest: ## the REST API under 200 requests a second, and 10,000 requests of owners over 1,000 RayClusters
	@$(call run,bench/rest)

.PHONY: bench-memory
bench-memory: ## the memory of serve under 2,000 ResourceRequests of 123 KB, beside the requests of an honest owner
	@$(call run,bench/memory)

# planners becomes the program that compares Heliostat's planner with Ray's; it gets the Ray that it needs from the kit.
define planners
	.ci/preflight go python
	go build -o "$(BIN)/autoscaler" ./cmd/autoscaler
	cd test
	go build -o "$(BIN)/bench-ray" ./bench/ray
	HELIOSTAT_PROGRAM="$(BIN)/autoscaler" exec "$(BIN)/bench-ray" $(1)
endef

.PHONY: bench-ray diff-ray
bench-ray: ## Ray's own planner beside Heliostat's: seconds of a decision, and prices over a lower bound
	@$(call planners,speed quality)

diff-ray: ## what the plans of both differ in on 2,000 random snapshots; fails when a cause is not known
	@$(call planners,diff)

.PHONY: churn
churn: ## five minutes of random work: nothing lost, nothing too much
	@$(call run,churn)

.PHONY: kueue
kueue: ## five minutes of demand in RayClusters that the real Kueue queues; make test has 30 seconds
	@.ci/preflight go python
	$(call kit)
	cd test
	HELIOSTAT_PROGRAM="$(BIN)/autoscaler" HELIOSTAT_TEST_DEMAND=5m go test -vet=off -count=1 -timeout 20m -v -run Queued ./neighbours

# conform runs the conformance list against real heads of the given Ray versions.
define conform
	variables=$$(cd test/devcluster && go run ./cmd/kit -variables -ray "$(1)")
	eval "$$variables"
	mkdir -p "$(BIN)"
	go test -vet=off -count=1 -timeout 20m ./internal/simray/conformance $(times)
endef

.PHONY: conformance
conformance: ## one list of assertions against the simulated Ray and against real heads of three versions
	@.ci/preflight go python
	$(call conform,2.40.0 2.52.0 2.60.0)

# Several may run; each has a name.
DEVCLUSTER ?= default

.PHONY: devcluster-up devcluster-down
devcluster-up: ## start a dev cluster for daily work, of the name DEVCLUSTER
	@.ci/preflight go python
	cd test/devcluster
	go run ./cmd/kit "the dev cluster's command=.:./cmd/devcluster:$(BIN)/devcluster"
	exec "$(BIN)/devcluster" up --name="$(DEVCLUSTER)"

devcluster-down: ## end it
	@cd test/devcluster
	go run ./cmd/devcluster down --name="$(DEVCLUSTER)"

.PHONY: screenshots
screenshots: ## pictures of the page for the documentation, taken in a real browser
	@cd test
	go test -vet=off -count=1 ./page -run Screenshots -args -screenshots "$(CURDIR)/docs/images"

.PHONY: clean
clean: ## remove what make built, all of it in $HELIOSTAT_CACHE
	@rm -rf "$(HELIOSTAT_CACHE)"
