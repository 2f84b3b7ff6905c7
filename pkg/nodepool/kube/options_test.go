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
		"Logger is missing":    {},
		"Single excludes":      {Logger: log, Single: &nodepool.ClusterKey{}, Namespaces: []string{"a"}},
		"needs LeaseNamespace": {Logger: log, LeaderElection: true},
		"Sharded needs Lease":  {Logger: log, Sharded: true, LeaseName: "x"},
		"Sharded excludes":     {Logger: log, Sharded: true, LeaderElection: true, LeaseNamespace: "a", LeaseName: "x"},
	} {
		if err := options.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
	if err := (Options{Logger: log, Namespaces: []string{"team-a"}}).Validate(); err != nil {
		t.Error(err)
	}
}
