package shard

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheProtocolCallsNothing(t *testing.T) {
	importtest.Only(t)
	importtest.Imports(t, map[string]string{
		"k8s.io/":  "package kube/shards reads and writes Leases",
		"context":  "it calls nothing, so nothing can be canceled",
		"net":      "it calls nothing",
		"os":       "it is a value",
		"log/slog": "package kube/shards logs",
	})
}
