package fieldpath

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
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

func TestLikelyIsCarefulWithNamesThatUsersInvent(t *testing.T) {
	known := []string{"CPU", "GPU", "memory", "accelerator_type:A10", "license"}
	for name, want := range map[string]string{
		"GPUS":                  "GPU",
		"GPUs":                  "GPU",
		"GUP":                   "GPU",
		"memroy":                "memory",
		"licence":               "license",
		"TPU":                   "",
		"NPU":                   "",
		"GPU2":                  "",
		"accelerator_type:A100": "",
		"fpga":                  "",
		"":                      "",
	} {
		if got := Likely(name, known); got != want {
			t.Errorf("%q likely means %q, want %q", name, got, want)
		}
	}
}

func TestADistanceIsAMetric(t *testing.T) {
	word := rapid.StringMatching(`[ab]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		switch {
		case (Distance(a, b) == 0) != (a == b):
			t.Errorf("%q and %q are %d apart", a, b, Distance(a, b))
		case Distance(a, b) != Distance(b, a):
			t.Errorf("%q and %q are %d apart one way and %d the other", a, b, Distance(a, b), Distance(b, a))
		case Distance(a, c) > Distance(a, b)+Distance(b, c):
			t.Errorf("the way from %q to %q by %q is shorter", a, c, b)
		case Distance(a, b) < max(len(a), len(b))-min(len(a), len(b)):
			t.Errorf("%q and %q are only %d apart", a, b, Distance(a, b))
		}
	})
}

func TestANameInOtherCaseIsFoundUnlessItIsKnownItself(t *testing.T) {
	known := []string{"CPU", "GPU", "gpu", "memory"}
	for name, want := range map[string]string{"cpu": "CPU", "Gpu": "GPU", "gpu": "", "GPU": "", "memor": "", "Memory": "memory", "": ""} {
		if got := OtherCase(name, known); got != want {
			t.Errorf("%q in other case is %q, want %q", name, got, want)
		}
	}
}
