package nodepool_test

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestOnlyDemandThatAllowsItIsPlacedOnALesserIsolation(t *testing.T) {
	has := []gpuinfo.Isolation{gpuinfo.Hardware, gpuinfo.Limit, gpuinfo.NoIsolation, gpuinfo.UnknownIsolation}
	for required, want := range map[nodepool.RequiredIsolation][4]bool{
		nodepool.RequireHardware: {true, false, false, false},
		nodepool.RequireLimit:    {true, true, false, false},
		nodepool.AnyIsolation:    {true, true, true, true},
	} {
		for i, isolation := range has {
			if got := required.Allows(isolation); got != want[i] {
				t.Errorf("%s allows %s: %t, want %t", required, isolation, got, want[i])
			}
		}
	}
}

func TestTheRayClusterGoesBeforeTheDefaultOfItsNamespace(t *testing.T) {
	tests := []struct {
		cluster, namespace string
		want               nodepool.RequiredIsolation
		problem            string
	}{
		{"", "", nodepool.AnyIsolation, ""},
		{"", "hardware", nodepool.RequireHardware, ""},
		{"limit", "hardware", nodepool.RequireLimit, ""},
		{"any", "limit", nodepool.AnyIsolation, ""},
		{"strong", "any", nodepool.RequireHardware, `reading heliostat.dev/isolation: reading isolation "strong": want hardware, limit or any`},
	}
	for _, test := range tests {
		got, err := nodepool.IsolationOf(test.cluster, test.namespace)
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if got != test.want || !strings.Contains(problem, test.problem) || problem != "" && test.problem == "" {
			t.Errorf("cluster %q, namespace %q: %s, %q; want %s, %q", test.cluster, test.namespace, got, problem, test.want, test.problem)
		}
	}
}
