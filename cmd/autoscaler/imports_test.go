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
