# `make` lists all targets. make demo shows Heliostat at work, make test tests it.

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
	@sed -nE 's/^##@ (.*)/\n\1/p; s/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

##@ Run

.PHONY: demo demo-karpenter
demo: ## the whole loop on a real Ray, step by step; DEMO_EXIT=1 exits by itself
	@$(call run,demo)

demo-karpenter: ## the real Karpenter beside it: machines come, go and are reclaimed under real Ray work
	@$(call run,demo/karpenter)

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

##@ Test

# The steps of test and of test-all, with their titles. Each is a target that repeats it alone.
TEST = verify="generated code" vet="format, style and go vet" unit="unit, property and scenario tests" \
	kit="a control plane, the operator, Ray and Heliostat" core="the core loop on a real Ray"
ALL = neighbours="Kueue, Karpenter, kwok and another Kubernetes" \
	rest="all tests with dev clusters; beside them linters, long tests, race detector and image" \
	beside="Ray Serve, Kueue and Karpenter, with nothing beside them"

# times collects the lines of go test, of which .ci/steps prints the slowest packages.
export STEP_TIMES := $(BIN)/times
times = | tee -a "$(STEP_TIMES)"

.PHONY: check test test-all
check: vet unit ## format, style, go vet and the unit tests

test: ## what a change must pass: check, generated code, and the core loop on a real Ray; 11 minutes the first time
	@.ci/preflight go python
	.ci/steps $(TEST)

test-all: ## all that CI runs, 45 minutes the first time; needs Debian's chromium and prometheus
	@.ci/preflight go python
	.ci/debian prometheus promtool chromium > /dev/null
	.ci/steps $(TEST) $(ALL)

.PHONY: vet unit kit core
vet:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go'))
	if [[ -n $$unformatted ]]; then
		echo "not formatted by gofmt:" $$unformatted >&2
		exit 1
	fi
	(cd tools && go run ./style ..)
	GOGC=$(LAVISH) go vet ./...

# With -short, tests that draw their cases draw fewer. The target long runs these in full.
unit:
	@mkdir -p "$(BIN)"
	go test -vet=off -short -timeout 20m ./... $(times)
	(cd test && go test -vet=off -short -timeout 20m ./simray/...) $(times)

kit:
	@$(call kit)

core: kit
	@mkdir -p "$(BIN)"
	cd test
	export HELIOSTAT_PROGRAM="$(BIN)/autoscaler"
	go test -vet=off -count=1 -timeout 20m -v -run $(CORE) ./e2e $(times)

# neighbours builds Kueue, Karpenter and kwok, and the Kubernetes of test/e2e/dra, before the tests that need them: beside
# these, it took half an hour.
.PHONY: neighbours
neighbours:
	@cd test/devcluster
	go run ./cmd/kit -parts "kueue karpenter kwok coscheduling"
	go run ./cmd/kit -kubernetes 1.36.0 -parts "kube-apiserver kube-scheduler kube-controller-manager"

# Tests with a dev cluster run beside the compiler and the linters, which have a lower priority. Each test starts Ray
# nodes, which keep a core busy until they are ready, and give up after half a minute: with two dev clusters at once on
# two cores, some did. Each dev cluster takes up to 3 GiB.
LANES ?= $(shell .ci/lanes)

.PHONY: rest quiet
rest:
	@$(MAKE) -j 2 quiet lanes

quiet:
	@.ci/background $(MAKE) -j 1 lint long race image-test

# packages lists the packages of a kind that tools/concurrency knows.
packages = $$(go -C tools build -o "$(BIN)/concurrency" ./concurrency && "$(BIN)/concurrency" $(1))

# long runs the tests that -short makes shorter, in full. race runs those with concurrency under the race detector.
.PHONY: long race
long:
	@mkdir -p "$(BIN)"
	go test -vet=off -timeout 60m $(call packages,long) $(times)

race:
	@mkdir -p "$(BIN)"
	CC=$$(.ci/cc "$(HELIOSTAT_CACHE)")
	export CC CGO_ENABLED=1
	$(call nvml,vet) ./pkg/gpuinfo/nvml ./cmd/autoscaler
	if [[ $$CC == *ziglang* ]]; then
		echo "without gcc or clang the tests of pkg/gpuinfo/nvml are left out: zig does not link go-nvml" >&2
	else
		$(call nvml,test) -vet=off ./pkg/gpuinfo/nvml $(times)
	fi
	GOGC=$(LAVISH) go test -race -short -vet=off -timeout 60m -gcflags=all=-l $(call packages,race) $(times)
	(cd test && GOGC=$(LAVISH) go test -race -short -vet=off -timeout 60m -gcflags=all=-l ./simray/...) $(times)

.PHONY: image-test
image-test: # build the image twice, push, pull and run it; and report known vulnerabilities
	@mkdir -p "$(BIN)"
	(cd tools && go test -vet=off -timeout 60m ./...) $(times)
	go build -o "$(BIN)/autoscaler" ./cmd/autoscaler
	.ci/vulnerabilities "$(BIN)/autoscaler"

# Each serve that these start may take as much memory as the chart lets it.
core loop outages beside nightly: export HELIOSTAT_TEST_MEMORY ?= 1Gi

# The tests of outages kill or stop what a dev cluster shares, so they have one for themselves.
CORE := '^TestCoreLoop$$'
OUTAGES := '^TestTheLoopOutlivesItsParts'

# Ray Serve and Ray Train start half a dozen Python processes for each RayCluster. Beside other dev clusters, that is more
# than two cores start within the half minute after which a raylet gives up.
SERVE := '^TestHalfEmptyWorkersOfServe|^TestServeAnswers|^TestTrainResumes'

.PHONY: lanes loop outages beside
lanes:
	@mkdir -p "$(BIN)"
	$(MAKE) -j $(LANES) loop outages

loop: kit
	@cd test
	export HELIOSTAT_PROGRAM="$(BIN)/autoscaler"
	packages=$$(go list ./... | grep -vE '/test/(e2e|neighbours|chart)$$')
	skip=$(CORE)'|'$(OUTAGES)'|'$(SERVE)
	go test -vet=off -count=1 -timeout 60m -p 1 -parallel 3 -skip "$$skip" ./e2e ./chart $$packages $(times)

outages: kit
	@$(call conform,2.60.0)
	(cd test/devcluster && go test -vet=off -count=1 -timeout 60m -p 1 ./...) $(times)
	cd test
	export HELIOSTAT_PROGRAM="$(BIN)/autoscaler"
	go test -vet=off -count=1 -timeout 60m -parallel 3 -run $(OUTAGES) ./e2e $(times)

# The tests beside Karpenter and Kueue assert in how many seconds both act together, and start a dozen Ray nodes at once,
# so nothing else runs then.
beside: kit
	@cd test
	export HELIOSTAT_PROGRAM="$(BIN)/autoscaler"
	go test -vet=off -count=1 -timeout 60m -parallel 2 -run $(SERVE) ./e2e $(times)
	go test -vet=off -count=1 -timeout 60m ./neighbours $(times)

# conform runs the conformance list against the simulated head and real heads of the given Ray versions.
define conform
	variables=$$(cd test/devcluster && go run ./cmd/kit -variables -ray "$(1)")
	eval "$$variables"
	mkdir -p "$(BIN)"
	(cd test && go test -vet=off -count=1 -timeout 60m ./simray/conformance) $(times)
endef

# planners becomes the program that compares Heliostat's planner with Ray's; it gets the Ray that it needs from the kit.
define planners
	.ci/preflight go python
	go build -o "$(BIN)/autoscaler" ./cmd/autoscaler
	cd test
	go build -o "$(BIN)/bench-ray" ./bench/ray
	HELIOSTAT_PROGRAM="$(BIN)/autoscaler" exec "$(BIN)/bench-ray" $(1)
endef

# real runs tests that test-all leaves out, on a dev cluster.
define real
	.ci/preflight go python
	$(call kit)
	cd test
	export HELIOSTAT_PROGRAM="$(BIN)/autoscaler" HELIOSTAT_TEST_SLOW=1 CHAOS_ROUND=1
	go test -vet=off -count=1 -timeout 60m -v -run $(1) $(2)
endef

# The seed is the day, so that each night has other faults and a failure says how to repeat it. The durations of churn are
# given, because DURATION is that of the longer chaos; without a real Ray, chaos also plays older storage. What is shortest
# comes first, and make stops at the first failure. It is `make` and not $(MAKE), which `make -n` would run.
.PHONY: nightly
nightly: ## what takes hours: churn, churn-karpenter, suspend, shards, chaos; NAME is one of them, or conformance, matrix, kueue, diff-ray, chaos-round
	@case "$(NAME)" in
	"")
		seed=$${SEED:-$$(date -u +%Y%m%d)}
		trap 'echo "make nightly NAME=… repeats what failed with SEED=$$seed" >&2' ERR
		echo "a night of seed $$seed"
		make nightly NAME=churn SEED=$$seed DURATION=5m
		make nightly NAME=churn-karpenter SEED=$$seed DURATION=15m
		make nightly NAME=suspend
		make nightly NAME=shards SEED=$$seed
		make nightly NAME=chaos SEED=$$seed DURATION=20m REAL=0
		make nightly NAME=chaos SEED=$$seed DURATION=$${DURATION:-2h}
		;;
	churn-karpenter)
		export KARPENTER=1 DURATION=$${DURATION:-15m}
		$(call run,churn)
		;;
	chaos)
		export DURATION=$${DURATION:-2h} REAL=$${REAL:-2}
		$(call run,chaos)
		;;
	chaos-round)
		$(call real,ARoundOfChaos,./chaos)
		;;
	suspend)
		$(call real,'^TestSlow',./e2e)
		;;
	kueue)
		$(call real,'Queued|Elastic',./neighbours)
		;;
	conformance)
		.ci/preflight go python
		$(call conform,2.40.0 2.52.0 2.60.0)
		;;
	diff-ray)
		$(call planners,diff)
		;;
	*)
		$(call run,$(NAME))
		;;
	esac

##@ Measure

.PHONY: bench
bench: ## Go benchmarks of a decision and of a cycle; NAME=loop, rest, memory, fleet, warmnodes or ray (docs/benchmarks.md)
	@case "$(NAME)" in
	"")
		go test -run '^$$' -bench . -benchmem ./...
		;;
	ray)
		$(call planners,speed quality)
		;;
	rest | warmnodes)
		export HELIOSTAT_TEST_MEMORY=$${HELIOSTAT_TEST_MEMORY:-1Gi}
		$(call run,bench/$(NAME))
		;;
	*)
		$(call run,bench/$(NAME))
		;;
	esac

##@ Develop

.PHONY: generate verify
generate: ## run the generators of code and manifests
	@(cd tools && go run ./protogen -source ../api/proto -out .. -module heliostat.dev/heliostat)
	go generate ./...
	(cd test && go run ./chart/generate ../deploy)

verify: ## run them, and fail if generated code or manifests were stale
	@before=$$(.ci/generated)
	$(MAKE) generate
	if ! diff <(echo "$$before") <(.ci/generated); then
		echo "generated code was stale; it is renewed now: commit it" >&2
		exit 1
	fi

.PHONY: lint
lint: vet ## staticcheck for all modules, and the licenses of dependencies
	@export GOGC=$(LAVISH)
	staticcheck=$$($(TOOL) -n staticcheck)
	"$$staticcheck" ./...
	for module in test test/devcluster tools; do
		echo "lint $$module"
		(cd $$module && go vet ./... && "$$staticcheck" ./...)
	done
	(cd tools && go run ./licenses/check)

.PHONY: screenshots
screenshots: ## the picture of the page for the documentation, taken in a real browser
	@cd test
	go test -vet=off -count=1 ./page -run Screenshot -args -screenshots "$(CURDIR)/docs/images"

.PHONY: clean
clean: ## remove what make built, all of it in $HELIOSTAT_CACHE
	@rm -rf "$(HELIOSTAT_CACHE)"

##@ Release

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
