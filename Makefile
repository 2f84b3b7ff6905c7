# `make` lists all targets. make demo shows Heliostat at work, make test runs all tests.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

export HELIOSTAT_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/heliostat

# One set of flags for everything, so that no command compiles again what another has compiled. The race detector is the
# exception, because it needs cgo. If git does not trust the checkout, for example another user's, builds are unstamped.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)
export GOWORK := off

# Programs of this checkout; two checkouts on one machine do not share them.
BIN := $(HELIOSTAT_CACHE)/checkouts/$(shell printf %s '$(CURDIR)' | sha256sum | cut -c 1-12)
TOOL := go tool -modfile=tools/go.mod

# GOGC of compilers and linters: with more memory, they take a tenth less time. Without inlining, which the race
# detector undoes anyway, its build takes a fifth less again.
LAVISH := 400

# Only NVML's adapter needs cgo. With Go's own resolver and user look-up, all other packages are those that the pure
# build has compiled. NVML's header warns about functions that nothing here calls.
nvml = CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations" go $(1) -tags nvml,netgo,osusergo

# kit checks the machine, then builds what a dev cluster needs, Heliostat, and the named programs of the test module,
# and shows its progress.
kit = (cd test/devcluster && go run ./cmd/kit "Heliostat=../..:./cmd/autoscaler:$(BIN)/autoscaler" $(foreach p,$(1),"$(p)=..:./$(p):$(BIN)/$(notdir $(p))"))

# run execs a program of the test module, so that signals reach it and not the go command.
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

.PHONY: demo-karpenter
demo-karpenter: ## the real Karpenter beside it: machines come, go and are reclaimed under real Ray work
	@$(call run,demo/karpenter)

# Tests with a dev cluster run beside the compiler and the linters, which have a lower priority. Each test starts Ray
# nodes, which keep a core busy until they are ready, and give up after half a minute: with two dev clusters at once on
# two cores, some did. Each dev cluster takes up to 3 GiB.
LANES ?= $(shell .ci/lanes)

# times collects the lines of go test for slowest.
times = | tee -a "$(BIN)/times"

.PHONY: test
test: ## everything that CI runs
	@.ci/preflight go python
	.ci/debian prometheus promtool chromium > /dev/null
	$(call kit)
	rm -f "$(BIN)/times"
	$(MAKE) neighbours verify
	$(MAKE) -j 2 quiet lanes
	$(MAKE) beside
	$(MAKE) slowest

.PHONY: quiet
quiet:
	@.ci/background $(MAKE) -j 1 lint unit image-test

# neighbours builds Kueue, Karpenter and kwok, before the tests that need them: beside these, it took half an hour.
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
	go test -vet=off -timeout 60m $(call packages,plain) $(times)
	long=($(call packages,long))
	go test -vet=off -timeout 60m -run "$${long[0]}" "$${long[@]:1}" $(times)
	CC=$$(.ci/cc "$(HELIOSTAT_CACHE)")
	export CC CGO_ENABLED=1
	$(call nvml,vet) ./pkg/gpuinfo/nvml ./cmd/autoscaler
	if [[ $$CC == *ziglang* ]]; then
		echo "without gcc or clang the tests of pkg/gpuinfo/nvml are left out: zig does not link go-nvml" >&2
	else
		$(call nvml,test) -vet=off ./pkg/gpuinfo/nvml $(times)
	fi
	GOGC=$(LAVISH) go test -race -short -vet=off -timeout 60m -gcflags=all=-l $(call packages,race) $(times)

.PHONY: agent
agent: ## the program with NVIDIA's driver library, for `gpus` and `agent`; needs glibc to run
	@CC=$$(.ci/cc "$(HELIOSTAT_CACHE)")
	export CC CGO_ENABLED=1
	if [[ $$CC == *ziglang* ]]; then
		echo "install gcc or clang: zig does not link go-nvml" >&2
		exit 1
	fi
	$(call nvml,build) -o "$(BIN)/agent/autoscaler" ./cmd/autoscaler
	echo "$(BIN)/agent/autoscaler"

.PHONY: image
image: ## the OCI image for amd64 and arm64, as an OCI layout; IMAGE=REPOSITORY:TAG also pushes it
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
image-test: ## test the image: build it twice, push, pull and run it; and report known vulnerabilities
	@mkdir -p "$(BIN)"
	(cd tools && go test -vet=off -timeout 60m ./...) $(times)
	go build -o "$(BIN)/autoscaler" ./cmd/autoscaler
	.ci/vulnerabilities "$(BIN)/autoscaler"

.PHONY: e2e
e2e: ## the real Ray head's conformance, tests of the dev cluster, and the whole loop on it
	@.ci/preflight go python
	$(call kit)
	$(MAKE) lanes
	$(MAKE) beside

# Each serve that these start may take as much memory as the chart lets it.
loop outages beside churn churn-karpenter e2e-slow chaos chaos-round shards bench-rest bench-warm-nodes: export HELIOSTAT_TEST_MEMORY ?= 1Gi

.PHONY: lanes heads cluster loop outages beside
lanes:
	@mkdir -p "$(BIN)"
	$(MAKE) -j $(LANES) loop outages

heads:
	@$(call conform,2.60.0)

cluster: heads
	@cd test/devcluster
	go test -vet=off -count=1 -timeout 60m -p 1 ./... $(times)

# The tests of outages kill or stop what a dev cluster shares, so they have one for themselves.
OUTAGES := '^TestTheLoopOutlivesItsParts'

# Ray Serve starts half a dozen Python processes for each RayCluster. Beside other dev clusters, that is more than two
# cores start within the half minute after which a raylet gives up.
SERVE := '^TestHalfEmptyWorkersOfServe'

loop:
	@cd test
	export HELIOSTAT_PROGRAM="$(BIN)/autoscaler"
	packages=$$(go list ./... | grep -vE '/test/(e2e|neighbours|chart)$$')
	go test -vet=off -count=1 -timeout 60m -p 1 -parallel 3 -skip $(OUTAGES)'|'$(SERVE) ./e2e ./chart $$packages $(times)

outages: cluster
	@cd test
	export HELIOSTAT_PROGRAM="$(BIN)/autoscaler"
	go test -vet=off -count=1 -timeout 60m -parallel 3 -run $(OUTAGES) ./e2e $(times)

# The tests beside Karpenter and Kueue assert in how many seconds both act together, and start a dozen Ray nodes at once,
# so nothing else runs then.
beside:
	@cd test
	export HELIOSTAT_PROGRAM="$(BIN)/autoscaler"
	go test -vet=off -count=1 -timeout 60m -parallel 2 -run $(SERVE) ./e2e $(times)
	go test -vet=off -count=1 -timeout 60m ./neighbours $(times)

.PHONY: lint lint-root
lint: lint-root ## vet and staticcheck for all modules, and the licenses of dependencies
	@export GOGC=$(LAVISH)
	staticcheck=$$($(TOOL) -n staticcheck)
	for module in test test/devcluster tools; do
		echo "lint $$module"
		(cd $$module && go vet ./... && "$$staticcheck" ./...)
	done
	(cd tools && go run ./licenses/check)

lint-root: style
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
style: ## report Go lines above 120 columns, and phrases for which there is a plainer word
	@cd tools
	go run ./style ..

.PHONY: generate
generate: ## run the generators of code and manifests
	@(cd tools && go run ./protogen -source ../api/proto -out .. -module heliostat.dev/heliostat)
	go generate ./...
	(cd test && go run ./chart/generate ../deploy)

.PHONY: verify
verify: ## fail if generated code or manifests are stale
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
bench-loop: ## the time from .remote() to the patch, on a real Ray; SIDECAR=1 adds Ray's own autoscaler
	@$(call run,bench/loop)

.PHONY: bench-rest
bench-rest: ## the REST API under 200 requests a second, and 10,000 requests of owners over 1,000 RayClusters
	@$(call run,bench/rest)

.PHONY: bench-memory
bench-memory: ## the memory of serve under 2,000 ResourceRequests of 123 KB
	@$(call run,bench/memory)

.PHONY: bench-fleet
bench-fleet: ## 1,000 RayClusters with 50 workers each, 5 % busy: age of data, demand to patch, cost; FLEET=5000
	@$(call run,bench/fleet)

.PHONY: bench-warm-nodes
bench-warm-nodes: ## .remote() to Ray node alive, and machine-minutes, with and without warm nodes of the real Karpenter; DELAY=60s
	@$(call run,bench/warmnodes)

# planners becomes the program that compares Heliostat's planner with Ray's; it gets the Ray that it needs from the kit.
define planners
	.ci/preflight go python
	go build -o "$(BIN)/autoscaler" ./cmd/autoscaler
	cd test
	go build -o "$(BIN)/bench-ray" ./bench/ray
	HELIOSTAT_PROGRAM="$(BIN)/autoscaler" exec "$(BIN)/bench-ray" $(1)
endef

.PHONY: bench-ray diff-ray
bench-ray: ## compare with Ray's own planner: time of a decision, and prices of plans
	@$(call planners,speed quality)

diff-ray: ## compare plans with Ray's on 2,000 random snapshots; fails if a difference has no known cause
	@$(call planners,diff)

.PHONY: churn
churn: ## five minutes of random work; fails if work is lost or a worker is superfluous
	@$(call run,churn)

.PHONY: churn-karpenter
churn-karpenter: export KARPENTER := 1
churn-karpenter: export DURATION ?= 15m
churn-karpenter: ## the same for 15 minutes while the real Karpenter consolidates and expires the machines; PROTECT=off
	@$(call run,churn)

.PHONY: chaos
chaos: export DURATION ?= 2h
chaos: export REAL ?= 2
chaos: ## a fleet under faults of everything around Heliostat, for DURATION=2h; fails if a rule of safety is broken
	@$(call run,chaos)

.PHONY: chaos-round
chaos-round: ## one round of it with one fault of each kind, about 80 s; SEED moves the faults
	@.ci/preflight go python
	$(call kit)
	cd test
	HELIOSTAT_PROGRAM="$(BIN)/autoscaler" CHAOS_ROUND=1 go test -vet=off -count=1 -timeout 10m -run ARoundOfChaos ./chaos

.PHONY: e2e-slow
e2e-slow: ## what takes minutes on a real Ray: RayClusters without work are suspended, actors are restarted elsewhere; 13 minutes
	@.ci/preflight go python
	$(call kit)
	cd test
	export HELIOSTAT_PROGRAM="$(BIN)/autoscaler" HELIOSTAT_TEST_SLOW=1
	go test -vet=off -count=1 -timeout 60m -v -run '^TestSlow' ./e2e

.PHONY: shards
shards: ## 1,000 RayClusters and three shards under 200 faults; fails if patches of two shards interleave; SEED, FLEET, KILLS, FAULTS, MUTANT=1
	@$(call run,shards)

# The seed is the day, so that each night has other faults and a failure says how to repeat it. The durations of churn are
# given, because DURATION is that of the longer chaos; without a real Ray, chaos also plays older storage. What is shortest
# comes first, and make stops at the first failure.
.PHONY: nightly
nightly: ## what is too long for make test: churn, churn-karpenter, e2e-slow, shards, chaos; SEED is the day, DURATION=2h that of the longer chaos
	@seed=$${SEED:-$$(date -u +%Y%m%d)}
	duration=$${DURATION:-2h}
	trap 'echo "the target that failed repeats it with SEED=$$seed" >&2' ERR
	echo "a night of seed $$seed"
	$(MAKE) churn SEED=$$seed DURATION=5m
	$(MAKE) churn-karpenter SEED=$$seed DURATION=15m
	$(MAKE) e2e-slow
	$(MAKE) shards SEED=$$seed
	$(MAKE) chaos SEED=$$seed DURATION=20m REAL=0
	$(MAKE) chaos SEED=$$seed DURATION=$$duration

.PHONY: kueue
kueue: ## five minutes of demand in RayClusters that the real Kueue queues; in make test, 30 seconds
	@.ci/preflight go python
	$(call kit)
	cd test
	HELIOSTAT_PROGRAM="$(BIN)/autoscaler" HELIOSTAT_TEST_DEMAND=5m go test -vet=off -count=1 -timeout 60m -v -run Queued ./neighbours

# conform runs the conformance list against real heads of the given Ray versions.
define conform
	variables=$$(cd test/devcluster && go run ./cmd/kit -variables -ray "$(1)")
	eval "$$variables"
	mkdir -p "$(BIN)"
	go test -vet=off -count=1 -timeout 60m ./internal/simray/conformance $(times)
endef

.PHONY: conformance
conformance: ## the same assertions against the simulated Ray head and real heads of three versions
	@.ci/preflight go python
	$(call conform,2.40.0 2.52.0 2.60.0)

.PHONY: matrix
matrix: ## the loop on releases of Ray, KubeRay and Kubernetes, for docs/versions.md; ONLY="2.60.0 1.5.1" limits it
	@$(call run,matrix)

# Several may run; each has a name.
DEVCLUSTER ?= default

.PHONY: devcluster-up devcluster-down
devcluster-up: ## start a dev cluster for daily work; DEVCLUSTER is its name
	@.ci/preflight go python
	cd test/devcluster
	go run ./cmd/kit "the dev cluster's command=.:./cmd/devcluster:$(BIN)/devcluster"
	exec "$(BIN)/devcluster" up --name="$(DEVCLUSTER)"

devcluster-down: ## stop it
	@cd test/devcluster
	go run ./cmd/devcluster down --name="$(DEVCLUSTER)"

.PHONY: screenshots
screenshots: ## the picture of the page for the documentation, taken in a real browser
	@cd test
	go test -vet=off -count=1 ./page -run Screenshot -args -screenshots "$(CURDIR)/docs/images"

.PHONY: clean
clean: ## remove what make built, all of it in $HELIOSTAT_CACHE
	@rm -rf "$(HELIOSTAT_CACHE)"
