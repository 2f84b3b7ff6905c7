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

func TestANameInOtherCaseIsFoundUnlessItIsKnownItself(t *testing.T) {
	known := []string{"CPU", "GPU", "gpu", "memory"}
	for name, want := range map[string]string{"cpu": "CPU", "Gpu": "GPU", "gpu": "", "GPU": "", "memor": "", "Memory": "memory", "": ""} {
		if got := OtherCase(name, known); got != want {
			t.Errorf("%q in other case is %q, want %q", name, got, want)
		}
	}
}
