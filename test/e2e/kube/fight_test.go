package kube

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/jobs"
)

// busyRay is a head in whose queue a task waits.
type busyRay struct{ readings int64 }

func (r *busyRay) State(context.Context) (raydemand.State, error) {
	r.readings++
	return raydemand.State{
		Session: "session", Version: r.readings,
		Nodes:  []raydemand.Node{{ID: raydemand.NodeID{1}, Instance: "head", Head: true, Status: raydemand.Idle}},
		Demand: raydemand.Demand{Requests: []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 1}}},
	}, nil
}

func (r *busyRay) Repeats(ctx context.Context, _ uint64) (raydemand.State, error) {
	return r.State(ctx)
}

func (r *busyRay) Drain(context.Context, raydemand.Drain) (raydemand.DrainReply, error) {
	return raydemand.DrainReply{}, nil
}

func (r *busyRay) Report(context.Context, raydemand.Report) error          { return nil }
func (r *busyRay) Residents(context.Context) ([]raydemand.Resident, error) { return nil, nil }

func (r *busyRay) Occupants(context.Context) (raydemand.Occupants, error) {
	return raydemand.Occupants{}, nil
}

func (r *busyRay) Jobs(context.Context) (jobs.Reading, error) { return jobs.Reading{}, nil }

func (r *busyRay) ReportClusterConfig(context.Context, raydemand.ClusterConfig) error { return nil }
func (r *busyRay) Close() error                                                       { return nil }

// withHead is Kubernetes with an address for the head, whose pod is pending in these tests.
type withHead struct{ *kube.Manager }

func (k withHead) Cluster(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error) {
	cluster, err := k.Manager.Cluster(ctx, key)
	cluster.Head.IP, cluster.Head.Ready = "192.0.2.1", true
	return cluster, err
}

// loop runs cycles until holds returns true about the last decision.
func (s *scene) loop(c *controller.Controller, what string, holds func(*addon.Decision) bool) *addon.Decision {
	s.Helper()
	var last *addon.Decision
	defer func() {
		if s.Failed() && last != nil {
			s.Logf("the last decision: groups %+v, unmet %+v, error %q, Ray %q, mode %s %+v, paused %q", last.Plan.Groups,
				last.Plan.InfeasibleRequests, last.Err, last.RayErr, last.Mode, last.Why, last.Paused)
		}
	}()
	s.until(what, func() bool {
		c.Cycle(s.Context(), s.key("llm"))
		var known bool
		last, known = c.Decision(s.key("llm"))
		return known && holds(last)
	})
	return last
}

func TestAFightWithGitOpsIsFoundAndPausesReductions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, manager string
		change        func(map[string]any)
		apply         func(*scene, *unstructured.Unstructured) error
	}{
		{"flux-without-replicas", flux, withoutReplicas, func(s *scene, git *unstructured.Unstructured) error { return s.serverSide(flux, git, true) }},
		{"argo-server-side", argoCD, func(map[string]any) {}, func(s *scene, git *unstructured.Unstructured) error { return s.serverSide(argoCD, git, true) }},
		{"argo-client-side", argoCD, withoutReplicas, func(s *scene, git *unstructured.Unstructured) error { return s.clientSide(argoCD, git) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := stage(t, "fight-"+test.name)
			git := inGit(s, test.change)
			s.must(test.apply(s, git))
			m := s.manager(kube.Options{})
			s.read(m, "llm")
			c := controller.New(withHead{m}, func(context.Context, nodepool.Cluster) (addon.Ray, error) { return &busyRay{}, nil }, controller.DefaultConfig())
			defer c.Close()
			for round := range 2 {
				d := s.loop(c, "a worker", func(*addon.Decision) bool { return len(s.workers("llm", "gpu")) == 1 })
				if d.Paused != "" && strings.Contains(d.Paused, test.manager) {
					t.Fatalf("round %d: paused too early: %s", round, d.Paused)
				}
				workers := s.workers("llm", "gpu")
				s.must(test.apply(s, git))
				s.until("the operator deletes the worker", func() bool {
					return !slices.ContainsFunc(s.workers("llm", "gpu"), func(pod string) bool { return slices.Contains(workers, pod) })
				})
			}
			d := s.loop(c, "the fight to be found", func(d *addon.Decision) bool { return strings.Contains(d.Paused, "field manager "+test.manager) })
			at := slices.IndexFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == observe.FindingReverted })
			if at < 0 || !strings.Contains(d.Findings[at].Why, "busy ones too, and Heliostat cannot prevent that") {
				t.Errorf("findings %+v, want one that says what happens to busy workers", d.Findings)
			}
			s.loop(c, "growth during the fight", func(*addon.Decision) bool { return len(s.workers("llm", "gpu")) == 1 })
			s.until("the Event", func() bool {
				events, err := lab.Client().CoreV1().Events(s.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + addon.ReasonReplicasReverted})
				return err == nil && len(events.Items) == 1 && strings.Contains(events.Items[0].Message, test.manager)
			})
		})
	}
}
