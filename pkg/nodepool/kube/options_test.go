package kube

import (
	"log/slog"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

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
		"Sharded needs Lease":  {Logger: log, Sharded: true, LeaseName: "x"},
		"Sharded excludes":     {Logger: log, Sharded: true, LeaderElection: true, LeaseNamespace: "a", LeaseName: "x"},
		"MostShards is -1":     {Logger: log, MostShards: -1},
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

func TestNoNodeAutoscalerIsTakenForTheScheduler(t *testing.T) {
	for _, name := range []string{"", "default-scheduler"} {
		if err := (Options{Logger: slog.New(slog.DiscardHandler), NodeAutoscalers: []string{name}}).Validate(); err == nil {
			t.Errorf("%q is taken for a node autoscaler", name)
		}
	}
	if err := (Options{Logger: slog.New(slog.DiscardHandler), NodeAutoscalers: []string{"in-house/compute"}}).Validate(); err != nil {
		t.Error(err)
	}
}
