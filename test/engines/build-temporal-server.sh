#!/bin/sh
# Builds Temporal's development server (`temporal server start-dev`), with which the tests on Temporal also kill the server, delete
# workflows and look for a planted word in its database:
#
#   sh test/engines/build-temporal-server.sh /tmp/temporal && TEMPORAL_DEV_SERVER=/tmp/temporal/temporal npm run test:engines
#
# It needs Go 1.26.4 and the Go module proxy, and takes eight minutes of CPU. `go install` refuses the program, whose go.mod
# replaces one of its own modules; a module of one's own may replace it.
set -e
mkdir -p "$1" && cd "$1"
[ -f go.mod ] || go mod init temporaldev
go mod edit -replace github.com/temporalio/cli/cliext=github.com/temporalio/cli/cliext@v0.0.0-20260731000218-c579925f193f
go get github.com/temporalio/cli/cmd/temporal@v1.8.2
CGO_ENABLED=0 go build -o temporal github.com/temporalio/cli/cmd/temporal
