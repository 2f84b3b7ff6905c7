package main

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheProgramContainsNothingForTests(t *testing.T) {
	importtest.Dependencies(t, map[string]string{
		"internal/simray/":        "a simulated head is for tests",
		"internal/simray":         "a simulated head is for tests",
		"internal/importtest":     "only tests check imports",
		"internal/httpapi/memnet": "a network in memory is for tests",
		"testing":                 "a program has no test flags",
	})
}

func TestTheProgramOnlyConnectsWhatServes(t *testing.T) {
	importtest.Imports(t, map[string]string{
		"internal/access":          "package listen decides who may call",
		"internal/access/":         "package listen decides who may call",
		"golang.org/x/net/netutil": "package listen bounds connections",
		"net/http/pprof":           "package listen serves profiles",
		"runtime/metrics":          "package memorylimit reads what the runtime measures",
	})
}
