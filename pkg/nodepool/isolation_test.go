package nodepool_test

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

func TestOnlyDemandThatAllowsItLandsOnALesserIsolation(t *testing.T) {
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

func TestAGroupIsAllowedByTheWeakestOfItsSlices(t *testing.T) {
	group := func(isolations ...gpuinfo.Isolation) *nodepool.WorkerGroup {
		g := &nodepool.WorkerGroup{}
		for _, isolation := range isolations {
			g.Slices = append(g.Slices, podfit.SliceAnswer{Slice: podfit.Slice{Isolation: isolation}})
		}
		return g
	}
	tests := []struct {
		name     string
		required nodepool.RequiredIsolation
		group    *nodepool.WorkerGroup
		want     bool
	}{
		{"no GPU", nodepool.RequireHardware, group(), true},
		{"instances", nodepool.RequireHardware, group(gpuinfo.Hardware, gpuinfo.Hardware), true},
		{"an instance and a share", nodepool.RequireHardware, group(gpuinfo.Hardware, gpuinfo.NoIsolation), false},
		{"a capped share", nodepool.RequireLimit, group(gpuinfo.Limit), true},
		{"nothing is required", nodepool.AnyIsolation, group(gpuinfo.NoIsolation), true},
		{"nothing is said", "", group(gpuinfo.UnknownIsolation), true},
	}
	for _, test := range tests {
		if got := test.required.AllowsGroup(test.group); got != test.want {
			t.Errorf("%s: allowed %t, want %t", test.name, got, test.want)
		}
	}
}
