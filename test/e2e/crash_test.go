package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/rig"
)

// TestSharedPartsMayDie kills Heliostat, the API server and the operator, one after the other. The test requests work
// while a component is down. One worker serves it after the component recovers, and busy workers stay alive throughout.
// No other test runs at the same time.
func TestSharedPartsMayDie(t *testing.T) {
	s := stage(t, rig.Cluster{Name: "crashes", IdleSeconds: 5, Groups: []rig.Group{cpu, gpu}})
	driver := s.drive()
	s.do(driver, actor("witness", 1))
	s.see(driver, "witness", "running")
	requested := s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"CPU": 2}]}`)
	s.workers("cpu", 1)

	parts := []struct {
		name       string
		kill, back func(context.Context) error
	}{
		{"Heliostat", func(context.Context) error { fleet.Kill(); return nil }, restartFleet},
		{"API server", kill(devcluster.APIServer), restart(devcluster.APIServer)},
		{"operator", kill(devcluster.Operator), restart(devcluster.Operator)},
	}
	for i, part := range parts {
		t.Logf("killing the %s", part.name)
		s.must(part.kill(s.ctx))
		id := fmt.Sprintf("after-%d", i)
		s.do(driver, task(id, 1))
		time.Sleep(2 * time.Second) // the other components see the outage
		ctx, cancel := s.patient()
		s.must(part.back(ctx))
		cancel()
		s.see(driver, id, "running")
		s.do(driver, rig.Command{Do: "ask", ID: "witness"})
		s.see(driver, "witness", "answered")
		s.created("gpu", 2+i)
	}
	s.quiet("everything is served")
	s.created("gpu", 1+len(parts))
	s.created("cpu", 1)

	// The REST request still exists, with its original time. After the test deletes it and ends the work, all workers
	// go.
	if diff := cmp.Diff(string(requested), string(s.rest(http.MethodGet, "/request_resources", ""))); diff != "" {
		s.Errorf("the request after all restarts (-before +after):\n%s", diff)
	}
	s.do(driver, release("witness"))
	for i := range parts {
		s.do(driver, release(fmt.Sprintf("after-%d", i)))
	}
	s.workers("gpu", 0)
	s.workers("cpu", 1)
	s.rest(http.MethodDelete, "/request_resources", "")
	s.workers("cpu", 0)
	s.drainedBeforeStopped()
	if lost := driver.Lost(); len(lost) > 0 {
		s.Errorf("work was lost: %+v", lost)
	}
}

func kill(part devcluster.Part) func(context.Context) error {
	return func(context.Context) error { return lab.Cluster.KillPart(part) }
}

func restart(part devcluster.Part) func(context.Context) error {
	return func(ctx context.Context) error { return lab.Cluster.RestartPart(ctx, part) }
}

func restartFleet(ctx context.Context) error {
	started, err := serve(ctx)
	if err == nil {
		fleet = started
	}
	return err
}

// TestAnUndecodableNeighbourBlindsNobody stores a RayCluster that typed clients cannot decode. The operator then sees
// no RayCluster at all. Heliostat must still decide for the valid one, whose pods appear after the invalid one is
// deleted.
func TestAnUndecodableNeighbourBlindsNobody(t *testing.T) {
	s := stage(t, rig.Cluster{Name: "good", IdleSeconds: 5, Groups: []rig.Group{gpu}})
	bad := rig.Cluster{Namespace: s.namespace, Name: "bad", Groups: []rig.Group{gpu}}.Manifest()
	groups, _, err := unstructured.NestedSlice(bad.Object, "spec", "workerGroupSpecs")
	s.must(err)
	groups[0].(map[string]any)["replicas"] = int64(2147483648)
	s.must(unstructured.SetNestedSlice(bad.Object, groups, "spec", "workerGroupSpecs"))
	s.must(lab.Create(s.ctx, bad))

	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.eventually("the good cluster to be patched", func(facts []rig.Fact) bool {
		_, ok := rig.First(facts, func(f rig.Fact) bool { return f.Stage == rig.GroupPatched && f.To == 1 })
		return ok
	})
	neighbour := &scene{T: t, ctx: s.ctx, namespace: s.namespace, name: "bad", journal: s.journal}
	neighbour.told("the field that cannot be read", func(st status) bool {
		return slices.ContainsFunc(st.Findings, func(f struct{ Code, Field string }) bool { return strings.HasSuffix(f.Field, "replicas") })
	})

	s.must(lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).Delete(s.ctx, "bad", metav1.DeleteOptions{}))
	// The operator's cache recovers when it retries its list, which can take a minute. A new process lists immediately.
	ctx, cancel := s.patient()
	defer cancel()
	s.must(lab.Cluster.RestartPart(ctx, devcluster.Operator))
	s.workers("gpu", 1)
}

// TestARayHeadMayDie kills the GCS. Ray ends the workers and the work with it. The REST request is still in the
// RayCluster, and the loop continues with the new session.
func TestARayHeadMayDie(t *testing.T) {
	t.Parallel()
	s := stage(t, rig.Cluster{Name: "head", IdleSeconds: 5, Groups: []rig.Group{cpu, gpu}})
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"CPU": 2}]}`)
	s.workers("cpu", 1)
	old, err := lab.HeadPod(s.ctx, s.namespace, s.name)
	s.must(err)
	session := s.session()

	s.must(rig.Crash(old.Name, "gcs_server"))
	ctx, cancel := s.patient()
	defer cancel()
	for s.session() == session {
		if ctx.Err() != nil {
			s.Fatal("the head did not come back")
		}
		time.Sleep(200 * time.Millisecond)
	}
	driver := s.drive()
	s.configured(driver, "after a restart of the head", map[string][2]int{"headgroup": {1, 1}, "cpu": {0, 4}, "gpu": {0, 4}})
	s.do(driver, task("again", 1))
	s.see(driver, "again", "running")
	s.workers("gpu", 1)
	s.living("cpu", 1)
	s.created("gpu", 1)
	// The lost worker's container restarts in its pod, or a new pod replaces it later. Both must not exist at once.
	if pods := rig.Pods(s.journal.Facts(), "cpu"); len(pods) > 2 {
		s.Errorf("group cpu had %d workers in all, want the lost one and at most one in its place: %v", len(pods), pods)
	}
}

// session returns the name of the head's Ray session, or "" while the head does not respond.
func (s *scene) session() string {
	s.Helper()
	client, err := lab.GCS(s.ctx, s.namespace, s.name)
	if err != nil {
		return ""
	}
	defer client.Close()
	session, err := client.SessionName(s.ctx)
	if err != nil {
		return ""
	}
	return session
}

// living waits until Ray has exactly n living workers of the group that are not draining.
func (s *scene) living(group string, n int) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for {
		got := s.alive(ctx, group)
		if got == n {
			return
		}
		if ctx.Err() != nil {
			s.Fatalf("Ray has %d living workers of group %s, want %d", got, group, n)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// alive returns the number of living workers of a group that the GCS lists, or -1 while the GCS does not respond.
func (s *scene) alive(ctx context.Context, group string) int {
	client, err := lab.GCS(ctx, s.namespace, s.name)
	if err != nil {
		return -1
	}
	defer client.Close()
	state, err := client.State(ctx)
	if err != nil {
		return -1
	}
	n := 0
	for _, node := range state.Nodes {
		if node.Group == group && (node.Status == raydemand.Running || node.Status == raydemand.Idle) {
			n++
		}
	}
	return n
}

// TestAWorkerMayDie kills the Ray processes of an idle worker that a request retains. Another worker is busy.
func TestAWorkerMayDie(t *testing.T) {
	t.Parallel()
	s := stage(t, rig.Cluster{Name: "worker", IdleSeconds: 5, Groups: []rig.Group{cpu, gpu}})
	driver := s.drive()
	s.do(driver, actor("witness", 1))
	s.see(driver, "witness", "running")
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"CPU": 2}]}`)
	victim := s.workers("cpu", 1)[0]

	s.must(rig.Crash(victim, "raylet"))
	s.eventually("Ray to miss the worker", func(facts []rig.Fact) bool {
		_, ok := rig.OfPod(facts, victim, rig.Drained)
		return ok
	})
	s.living("cpu", 1)
	s.do(driver, rig.Command{Do: "ask", ID: "witness"})
	s.see(driver, "witness", "answered")
	s.created("gpu", 1)
	s.eventually("one worker to be left", func(facts []rig.Fact) bool { return len(rig.Living(facts, "cpu")) == 1 })
	if pods := s.workersEver("cpu"); len(pods) > 2 {
		s.Errorf("one worker was lost, and there were %v", pods)
	}
}
