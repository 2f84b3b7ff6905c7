package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/upgrade"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var olderKey = nodepool.ClusterKey{Namespace: "ml", Name: "llm-old"}

// older is what Serve says on the older RayCluster of an upgrade.
type older struct {
	replicas int64
	err      error
	reads    int
	head     nodepool.Head // which was read
}

var errPanics = errors.New("a defect")

func (o *older) serves(_ context.Context, cluster nodepool.Cluster) ([]raydemand.Deployment, error) {
	o.reads, o.head = o.reads+1, cluster.Head
	if o.err == errPanics {
		panic(o.err)
	}
	if o.err != nil {
		return nil, o.err
	}
	return []raydemand.Deployment{{App: "app", Name: "model", Replicas: o.replicas, Bundles: []raydemand.Bundle{gpu(1)}}}, nil
}

// upgrading is the newer RayCluster of an upgrade whose older one has replicas of one GPU.
func upgrading(t *testing.T, policy string, replicas int64, most int) (*world, *older) {
	t.Helper()
	serves := &older{replicas: replicas}
	w := newWorld(t, Config{Serves: serves.serves}, gpuGroup("gpu", 0, 0, most))
	w.kube.others = map[nodepool.ClusterKey]nodepool.Cluster{olderKey: {Key: olderKey, Head: nodepool.Head{IP: "10.0.0.9", DashboardPort: 8265}}}
	w.policy(policy)
	w.kube.cluster.Owner = nodepool.Owner{Kind: "RayService", Name: "llm"}
	w.kube.cluster.UpgradeFrom, w.kube.cluster.CreatedAt = &olderKey, w.now
	return w, serves
}

// read lets the reading that a cycle has begun end, and runs another cycle.
func (w *world) read() *decision.Decision {
	w.t.Helper()
	w.cycle()
	w.c.reading.Wait()
	return w.cycle()
}

func codesOf(findings []raydemand.Finding) (codes []string) {
	for _, f := range findings {
		codes = append(codes, f.Code)
	}
	return codes
}

func TestAnUpgradeHasRoomForTheReplicasOfTheOlderRayCluster(t *testing.T) {
	w, serves := upgrading(t, `{"onUpgrade": "match"}`, 3, 8)
	d := w.read()
	if got := w.group("gpu").Replicas; got != 3 || serves.head.IP != "10.0.0.9" {
		t.Fatalf("%d replicas after reading %+v, want 3", got, serves.head)
	}
	if d.Plan.Warm[0].Reason.Code != planner.CodeUpgrade || !slices.Contains(codesOf(d.Findings), upgrade.Warming) {
		t.Errorf("%+v, findings %v", d.Plan.Warm, codesOf(d.Findings))
	}
	w.operate()
	w.joinAll()
	for range 5 { // beyond the idle timeout
		w.after(time.Minute)
		w.c.reading.Wait()
	}
	if len(w.ray.drains) != 0 || w.group("gpu").Replicas != 3 {
		t.Fatalf("drained %v: the room goes before the replicas come", w.ray.drained())
	}
	w.busy(w.pod(0)) // one replica runs, one waits
	w.want(1, gpu(1))
	for range 3 {
		w.after(time.Second)
		if got := w.group("gpu").Replicas; got != 3 {
			t.Fatalf("%d replicas, want 3: what works or waits is not kept again", got)
		}
	}
	w.want(0, nil)
	for i := range 3 {
		w.busy(w.pod(i))
	}
	for range 4 {
		d = w.after(20 * time.Second)
		w.c.reading.Wait()
	}
	if got := w.group("gpu").Replicas; got != 3 || len(d.Plan.Warm) != 0 {
		t.Errorf("%d replicas, %+v: the upgrade is complete", got, d.Plan.Warm)
	}
	reads := serves.reads
	w.node(w.pod(0)).Status, w.node(w.pod(0)).Available = raydemand.Idle, gpu(1) // Serve needs less by now
	for range 10 {
		w.after(20 * time.Second)
		w.c.reading.Wait()
	}
	if len(w.ray.drains) == 0 || serves.reads != reads {
		t.Errorf("drained %v, %d more readings: a complete upgrade keeps nothing", w.ray.drained(), serves.reads-reads)
	}
}

// TestASilentHeadGetsNoRoom: if it never answers, nothing could be given back.
func TestASilentHeadGetsNoRoom(t *testing.T) {
	w, serves := upgrading(t, `{"onUpgrade": "match"}`, 3, 8)
	w.ray.stateErr = errors.New("connection refused")
	w.read()
	if got := w.group("gpu").Replicas; got != 0 || serves.reads == 0 {
		t.Fatalf("%d replicas after %d readings, want none while the head starts", got, serves.reads)
	}
	w.ray.stateErr = nil
	if w.after(time.Minute); w.group("gpu").Replicas != 3 {
		t.Errorf("%d replicas, want 3 as soon as the head answers", w.group("gpu").Replicas)
	}
}

// TestRoomThatTakesLongToComeStays: pods that no demand requests leave after the idle timeout, if they have not joined.
func TestRoomThatTakesLongToComeStays(t *testing.T) {
	upgrades, _ := upgrading(t, `{"onUpgrade": "match"}`, 3, 8)
	warm := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 8))
	warm.policy(`{"keepWarm": [{"group": "gpu", "count": 3}]}`)
	for name, w := range map[string]*world{"upgrade": upgrades, "keepWarm": warm} {
		w.read()
		w.operate()
		for range 8 { // the idle timeout is a minute
			w.after(30 * time.Second)
			w.c.reading.Wait()
			w.operate()
		}
		if made := w.pods; made != 3 || w.group("gpu").Replicas != 3 {
			t.Errorf("%s: %d pods made, %d replicas; want the same 3 that wait for nodes", name, made, w.group("gpu").Replicas)
		}
		w.kube.cluster.Policy = nil
		for range 6 {
			w.after(30 * time.Second)
		}
		if got := w.group("gpu").Replicas; got != 0 {
			t.Errorf("%s: %d replicas, want none without the policy", name, got)
		}
	}
}

// TestAReadingOutlivesTheCycle: a shard ends the context of a cycle with the cycle.
func TestAReadingOutlivesTheCycle(t *testing.T) {
	w, _ := upgrading(t, `{"onUpgrade": "match"}`, 3, 8)
	answer := make(chan struct{})
	w.restart(Config{Serves: func(ctx context.Context, _ nodepool.Cluster) ([]raydemand.Deployment, error) {
		<-answer
		return []raydemand.Deployment{{App: "app", Name: "model", Replicas: 3, Bundles: []raydemand.Bundle{gpu(1)}}}, ctx.Err()
	}})
	ctx, end := context.WithCancel(t.Context())
	w.c.Cycle(ctx, key)
	end()
	close(answer)
	w.c.reading.Wait()
	if w.cycle(); w.group("gpu").Replicas != 3 {
		t.Errorf("%d replicas, want 3", w.group("gpu").Replicas)
	}
}

func TestSilentOrUnaskedNothingIsKept(t *testing.T) {
	for _, c := range []struct {
		name, policy string
		change       func(*world, *older)
		reads        bool
		code         string
	}{
		{"no policy for upgrades", `{"forecast": "suggest"}`, func(*world, *older) {}, false, ""},
		{"none", `{"onUpgrade": "none"}`, func(*world, *older) {}, false, ""},
		{"no older RayCluster", `{"onUpgrade": "match"}`, func(w *world, _ *older) { w.kube.cluster.UpgradeFrom = nil }, false, ""},
		{"no RayService", `{"onUpgrade": "match"}`, func(w *world, _ *older) {
			w.kube.cluster.UpgradeFrom, w.kube.cluster.Owner = nil, nodepool.Owner{}
		}, false, upgrade.Unused},
		{"the head does not answer", `{"onUpgrade": "match"}`, func(_ *world, o *older) { o.err = errors.New("no reply within 3s") }, true, upgrade.Unread},
		{"a defect is a finding", `{"onUpgrade": "match"}`, func(_ *world, o *older) { o.err = errPanics }, true, upgrade.Unread},
		{"the time is over", `{"onUpgrade": "match"}`, func(w *world, _ *older) { w.kube.cluster.CreatedAt = w.now.Add(-upgrade.Longest) }, false, ""},
		{"the mode is off", `{"onUpgrade": "match"}`, func(w *world, _ *older) { w.kube.cluster.Mode = nodepool.Off }, false, ""},
		{"nothing is in the budget", `{"onUpgrade": "match", "budget": {"perDay": 0}}`, func(*world, *older) {}, true, upgrade.Warming},
	} {
		w, serves := upgrading(t, c.policy, 3, 8)
		c.change(w, serves)
		d := w.read()
		if got := w.group("gpu").Replicas; got != 0 || (serves.reads > 0) != c.reads {
			t.Errorf("%s: %d replicas, %d readings", c.name, got, serves.reads)
		}
		found := codesOf(d.Findings)
		if about := slices.DeleteFunc(found, func(code string) bool { return !strings.HasPrefix(code, "upgrade-") }); strings.Join(about, " ") != c.code {
			t.Errorf("%s: findings %v, want %q", c.name, about, c.code)
		}
	}
}

func TestTheOlderRayClusterIsReadEveryTenSecondsUntilTheTimeIsOver(t *testing.T) {
	w, serves := upgrading(t, `{"onUpgrade": "match"}`, 3, 8)
	w.read()
	first := serves.reads
	for range 100 { // ten seconds
		w.after(100 * time.Millisecond)
		w.c.reading.Wait()
	}
	if got := serves.reads - first; first != 1 || got != 1 {
		t.Errorf("%d readings at first and %d in ten seconds, want 1 and 1", first, got)
	}
	w.operate()
	w.joinAll()
	serves.err = errors.New("no reply within 3s")
	w.after(upgrade.ReadEvery)
	w.c.reading.Wait()
	d := w.cycle()
	if w.group("gpu").Replicas != 3 || !slices.Contains(codesOf(d.Findings), upgrade.Unread) || d.Err != "" {
		t.Errorf("%d replicas, %v, %s: want what was read before, and a finding", w.group("gpu").Replicas, codesOf(d.Findings), d.Err)
	}
	w.pass(upgrade.Longest)
	d = w.cycle()
	if len(d.Plan.Warm) != 0 || !slices.Contains(codesOf(d.Findings), upgrade.Overdue) {
		t.Errorf("%+v, %v: want nothing kept after %s", d.Plan.Warm, codesOf(d.Findings), upgrade.Longest)
	}
}

func TestASlowOlderHeadDelaysNoDecision(t *testing.T) {
	w, _ := upgrading(t, `{"onUpgrade": "match"}`, 3, 8)
	release := make(chan struct{})
	w.restart(Config{Serves: func(ctx context.Context, _ nodepool.Cluster) ([]raydemand.Deployment, error) {
		<-release
		return nil, ctx.Err()
	}})
	w.cycle()
	w.want(2, gpu(1))
	if w.after(time.Second); w.group("gpu").Replicas != 2 {
		t.Errorf("%d replicas while a reading runs, want 2", w.group("gpu").Replicas)
	}
	if w.after(time.Minute); len(w.c.olderReads) != 1 {
		t.Errorf("%d readings run at once, want 1", len(w.c.olderReads))
	}
	close(release)
	w.c.Close()
	if len(w.c.olderReads) != 0 {
		t.Error("a reading runs after Close")
	}
}
