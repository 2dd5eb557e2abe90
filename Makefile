# `make test` is everything; the other targets are its parts or take longer.

GO ?= go
FUZZTIME ?= 30s
SCHEDULES ?= 1000000
SEEDS ?= 1-20

.PHONY: help test prerequisites check unit mutants chaos simulate fuzz bench bench-go build demo

help: ## Show this help.
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: prerequisites check unit ## Run every test, with the race detector, against real servers.

prerequisites: ## Install what the tests need, or say how.
	@sh test/prerequisites.sh

check: ## Formatting and vet.
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt -w $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags release ./cmd/...

# test/kubernetes reads files outside of its module, which Go's cache of results
# does not know: hence -count 1.
unit: ## All packages, fuzzers for a few seconds each.
	$(GO) test -race -timeout 60m ./...
	cd test/kubernetes && $(GO) test -count 1 ./...
	@sh test/fuzz.sh 5s

mutants: ## Every mutant against its scenario.
	$(GO) test -race -timeout 60m -run 'TestMutants' -count 1 -v ./test/scenarios -mutants all

# KINDS="leader moves,slot dropped" runs only the seeds whose schedule has a fault of
# one of these kinds; an unknown one is answered with the list of all.
chaos: ## Schedules of random faults, of the seeds SEEDS (1-20); REPORT=docs/chaos.md keeps a line of each.
	$(GO) test -timeout 24h -count 1 -v -run 'TestChaos$$' ./test/scenarios -chaos.seeds $(SEEDS) -chaos.kinds "$(KINDS)" $(if $(REPORT),-chaos.report $(abspath $(REPORT)))

simulate: ## A million schedules of publishers against models of PostgreSQL and Kafka, and every mutant of the publisher.
	GOGC=800 $(GO) test -timeout 180m -run 'TestSimulation$$' -count 1 -v ./internal/kafka -simulate.count $(SCHEDULES)
	$(GO) test -timeout 60m -run 'TestSimulationCatches$$' -count 1 -v ./internal/kafka -simulate.mutants all

fuzz: ## Every fuzzer for FUZZTIME (30s).
	@sh test/fuzz.sh $(FUZZTIME)

# NAME is the report's name, LOADS the letters of loads; package test/bench says
# what each letter is, and which flags there are (ARGS).
bench: ## cdcpub beside pg_recvlogical and Debezium, alternating, on an idle machine: docs/benchmarks.
	$(GO) test -run '^$$' -bench Loads -benchtime 1x -timeout 180m -v ./test/bench -bench.report $(abspath docs/benchmarks) \
		$(if $(LOADS),-bench.loads $(LOADS)) $(if $(NAME),-bench.name $(NAME)) $(ARGS)

# benchstat reads what `go test -bench` prints, so that is what is kept.
BENCHSTAT = $(GO) run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
HOT_PATH = ./wal ./router ./checkpoint ./internal/kafka

bench-go: ## Decoder, router, tracker, batch and producer alone, compared by benchstat with docs/benchmarks/go.txt, which it replaces.
	$(GO) test -run '^$$' -bench 'Decode|Route|Tracker|Batch|Producer' -benchmem -count 6 $(HOT_PATH) > go-bench.txt
	$(BENCHSTAT) docs/benchmarks/go.txt go-bench.txt
	@mv go-bench.txt docs/benchmarks/go.txt

build: ## A release binary in bin/.
	CGO_ENABLED=0 $(GO) build -tags release -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/cdcpub ./cmd/cdcpub

demo: ## A hundred events through a real PostgreSQL and a broker in the process.
	$(GO) run ./cmd/cdcpub demo --events 100
