package kube

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// What a person writes into one RayCluster is told within bounds: a finding for each of ten thousand entries, each with
// the whole annotation in it, made an answer of 200 MB.
func TestWhatIsWrongWithoutEndIsToldBriefly(t *testing.T) {
	requests := "[" + strings.Repeat("7,", 9999) + "7]"
	var unknown strings.Builder
	for i := range 500 {
		fmt.Fprintf(&unknown, "    heliostat.dev/moode-%d: %s\n", i, strings.Repeat("é", 200))
	}
	cluster := decodeSample(t,
		`[{"resources":{"GPU":0.5},"count":3,"labelSelectors":[{"zone":"in(a,b)"}]}]`, requests,
		"    heliostat.dev/mode: shadow\n", "    heliostat.dev/mode: shadow\n"+unknown.String())
	told, size := map[string]int{}, 0
	for _, f := range cluster.Findings {
		told[f.Code]++
		size += len(f.Seen) + len(f.Why) + len(f.Fix) + len(f.Field)
	}
	if told[AnnotationUnreadable] != mostProblems+1 || told[AnnotationUnknown] != mostOfACode {
		t.Errorf("findings by code: %v, want %d and %d", told, mostProblems+1, mostOfACode)
	}
	if size > 16<<10 {
		t.Errorf("the findings are %d bytes long", size)
	}
	text := fmt.Sprint(cluster.Findings)
	for _, want := range []string{"9997 more entries are left out", "480 more of this kind are not listed", "(20001 bytes)"} {
		if !strings.Contains(text, want) {
			t.Errorf("nobody is told %q", want)
		}
	}
}

func TestOptionsThatWouldServeSomethingElseAreRefused(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for want, options := range map[string]Options{
		`namespace ""`:         {Logger: log, Namespaces: []string{"b", ""}},
		`namespace "UPPER/.."`: {Logger: log, Namespaces: []string{"UPPER/.."}},
		`LeaseName "///"`:      {Logger: log, LeaderElection: true, LeaseNamespace: "a", LeaseName: "///"},
		`LeaseNamespace "A"`:   {Logger: log, LeaderElection: true, LeaseNamespace: "A", LeaseName: "x"},
		"Logger is missing":    {},
		"Single excludes":      {Logger: log, Single: &nodepool.ClusterKey{}, Namespaces: []string{"a"}},
		"needs LeaseNamespace": {Logger: log, LeaderElection: true},
		"Poll is -1ns, want":   {Logger: log, Poll: -1},
	} {
		if err := options.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
	if err := (Options{Logger: log, Namespaces: []string{"team-a"}}).Validate(); err != nil {
		t.Error(err)
	}
}
