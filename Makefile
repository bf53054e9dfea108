# Needs Go 1.26 and make; everything else the targets fetch themselves.
#   make run      build, then start a broker on its embedded ZooKeeper; ARGS='...' adds to its command line
#   make test     all tests; installs the real programs they run against
#   make check    format, vet, staticcheck, lint, cross-compilation
#   make bench    side by side with Apache Kafka 3.9.1
#   make soak     the long random runs
.PHONY: build run check lint cross test unit real bench soak docs
SHELL := /bin/bash -o pipefail
export CGO_ENABLED ?= 1

build:
	CGO_ENABLED=0 go build -trimpath -o bin/barnabas ./cmd/barnabas

run: build
	./bin/barnabas start $(ARGS)

check: lint cross
	@unformatted=$$(gofmt -l cmd internal test bench client 2>/dev/null); [ -z "$$unformatted" ] || { echo "gofmt these: $$unformatted"; exit 1; }
	go vet ./...
	go tool staticcheck ./...

lint:
	go test -count=1 ./internal/lint

cross:
	for os in linux darwin; do for arch in amd64 arm64; do echo "build $$os/$$arch"; GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 go build ./... || exit 1; done; done

# Allocations are counted without the race detector, which makes some of its own.
ALLOCATIONS := ./internal/record ./internal/server ./internal/storage ./internal/wire

# Tests with real programs wait more than they compute: three packages run at a
# time, or two beside each other where followers have to keep up.
PAIRS := /(replication|storage|streams|transactions|zookeeper)$$
# The longest begin first, so that none is alone at the end.
LONGEST := interop tools groups cases changeover keeper api security

test:
	./test/setup
	{ go test -json -race -timeout 15m ./internal/... ./cmd/... ./client/...; go test -json -run Alloc $(ALLOCATIONS); go test -json -race -p 3 -timeout 40m $(LONGEST:%=./test/%) $$(go list ./test/... | grep -vE '$(PAIRS)'); go test -json -race -p 2 -timeout 40m $$(go list ./test/... | grep -E '$(PAIRS)'); } | go run ./test/count

bench:
	./test/setup
	go test -count=1 -timeout 2h ./bench -v

soak:
	./test/setup
	BARNABAS_SOAK=1 go test -json -race -p 1 -timeout 10h ./internal/... ./test/... | go run ./test/count
