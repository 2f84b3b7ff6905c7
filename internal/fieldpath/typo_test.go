package fieldpath

import (
	"strings"
	"testing"
)

func TestNearestFindsTheNameThatIsCertainlyMeant(t *testing.T) {
	known := []string{"key", "image", "replicas", "minReplicas", "maxReplicas", "resources", "pendingRequests"}
	for name, want := range map[string]string{
		"pending_requests":      "pendingRequests",
		"minreplicas":           "minReplicas",
		"maxReplica":            "maxReplicas",
		"maxRepilcas":           "maxReplicas",
		"imag":                  "image",
		"env":                   "",
		"Image":                 "image",
		"replicas":              "",
		"resourcesOf":           "resources",
		"rep":                   "",
		"":                      "",
		strings.Repeat("g", 99): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}
