package fieldpath

import (
	"strings"
	"testing"
)

func TestNearestFindsTheSimilarName(t *testing.T) {
	known := []string{"pendingRequests", "pendingGangRequests", "groups", "nodes", "maxWorkers"}
	for name, want := range map[string]string{
		"pending_requests":      "pendingRequests",
		"Groups":                "groups",
		"group":                 "groups",
		"node":                  "nodes",
		"pendingGang":           "pendingGangRequests",
		"maxWorkres":            "maxWorkers",
		"ndoes":                 "nodes",
		"sedon":                 "",
		"comment":               "",
		"":                      "",
		strings.Repeat("g", 99): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}

func TestSlipIsCertain(t *testing.T) {
	known := []string{"image", "replicas", "minReplicas", "maxReplicas", "resources"}
	for name, want := range map[string]string{
		"minreplicas": "minReplicas",
		"maxReplica":  "maxReplicas",
		"imag":        "",
		"Image":       "image",
		"replicas":    "",
		"resourcesOf": "resources",
		"rep":         "",
	} {
		if got := Slip(name, known); got != want {
			t.Errorf("%q slipped from %q, want %q", name, got, want)
		}
	}
}
