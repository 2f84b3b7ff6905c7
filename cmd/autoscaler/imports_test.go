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

func TestOnlyTheEngineServes(t *testing.T) {
	importtest.Imports(t, map[string]string{
		"cmd/autoscaler/publish":       "package engine publishes decisions",
		"internal/controller":          "package engine runs the loop",
		"internal/controller/":         "package engine runs the loop",
		"internal/ledger":              "package engine adds up costs",
		"internal/ledger/":             "package engine keeps costs",
		"internal/listen":              "package engine starts servers",
		"internal/memorylimit":         "package engine bounds its memory",
		"internal/rayenv":              "package engine calls heads",
		"internal/webui":               "package engine serves the page",
		"pkg/raydemand/gcs":            "package engine calls heads",
		"pkg/raydemand/serve":          "package engine calls heads",
		"github.com/prometheus/":       "package engine serves metrics",
		"k8s.io/client-go/kubernetes/": "package kube and the doctor's intake read objects",
		"internal/access":              "package listen decides who may call",
		"internal/access/":             "package listen decides who may call",
	})
}
