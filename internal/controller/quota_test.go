package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// kueueWorld is a world with an elastic RayCluster in a queue. Kueue admits all groups together or none.
type kueueWorld struct {
	*world
	// quota is how many pods of each group Kueue admits; known says that Heliostat may read it.
	quota map[string]int
	known bool
	// tasks is how many tasks there are, each of one GPU.
	tasks int
	// pendings counts the Workloads that had to wait; lost are the pods deleted after they had quota.
	pendings int
	lost     []string
}

const noQuota = "couldn't assign flavors to pod set od: insufficient unused quota"

func newKueueWorld(t *testing.T, quota map[string]int, known bool, groups ...nodepool.WorkerGroup) *kueueWorld {
	t.Helper()
	k := &kueueWorld{world: newWorld(t, Config{}, groups...), quota: quota, known: known}
	k.kube.cluster.Queue = nodepool.Queue{Name: "research", Mark: "label", Elastic: true,
		Quota: &nodepool.Quota{Elastic: true, Admitted: true, Granted: map[string]int{}}}
	k.admit()
	return k
}

// admit does what Kueue does after replicas changed.
func (k *kueueWorld) admit() {
	before := k.kube.cluster.Queue.Quota
	now := &nodepool.Quota{Elastic: true, Admitted: true, Granted: before.Granted, Unbounded: "unknown"}
	asked, fits, grows := map[string]int{}, true, false
	for _, g := range k.kube.cluster.Groups {
		asked[g.Name] = g.Replicas
		fits, grows = fits && g.Replicas <= k.quota[g.Name], grows || g.Replicas > before.Granted[g.Name]
		if k.known {
			now.Unbounded = ""
			now.Bounds = append(now.Bounds, landing.Quota{
				Name: "flavor " + g.Name + " of ClusterQueue q", Resource: "nvidia.com/gpu",
				Amount:   raydemand.Whole(int64(k.quota[g.Name])),
				PodTakes: map[string]raydemand.Amount{g.Name: raydemand.One},
			})
		}
	}
	if fits || !grows {
		now.Granted = asked
	} else {
		now.Pending = &nodepool.PendingWorkload{Name: "w", Version: fmt.Sprint(asked), Pods: asked, Message: noQuota, Judged: true}
		if before.Pending == nil || before.Pending.Version != now.Pending.Version {
			k.pendings++
		}
	}
	k.kube.cluster.Queue.Quota = now
	open := maps.Clone(now.Granted)
	for i := range k.kube.cluster.Workers {
		p := &k.kube.cluster.Workers[i]
		open[p.Group]--
		p.Gated = open[p.Group] < 0 && !p.Running
	}
}

// step lets the operator and Kueue follow one cycle. Pods with quota join and run a task each.
func (k *kueueWorld) step() *addon.Decision {
	d := k.after(100 * time.Millisecond)
	before := slices.Clone(k.kube.cluster.Workers)
	k.operate()
	for _, p := range before {
		if !p.Gated && !k.exists(p.Pod) {
			k.lost = append(k.lost, p.Pod)
		}
	}
	k.admit()
	waiting := k.tasks
	for i := range k.kube.cluster.Workers {
		if p := k.kube.cluster.Workers[i]; !p.Gated && waiting > 0 {
			if !p.Running {
				k.join(i)
			}
			k.busy(p.Pod)
			waiting--
		}
	}
	k.want(int64(waiting), gpu(1))
	return d
}

func (k *kueueWorld) join(i int) {
	all := k.kube.cluster.Workers
	k.kube.cluster.Workers = all[i : i+1]
	k.joinAll()
	k.kube.cluster.Workers = all
}

func (k *kueueWorld) running() map[string]int {
	counts := map[string]int{}
	for _, p := range k.kube.cluster.Workers {
		if p.Running {
			counts[p.Group]++
		}
	}
	return counts
}

// until steps until so many pods run, and returns how long that took.
func (k *kueueWorld) until(pods int, most time.Duration) time.Duration {
	k.t.Helper()
	began := k.now
	for {
		sum := 0
		for _, n := range k.running() {
			sum += n
		}
		if sum >= pods {
			return k.now.Sub(began)
		}
		if k.now.Sub(began) > most {
			k.t.Fatalf("after %v only %v run; replicas %v, changes %+v", most, k.running(), k.kube.cluster.Groups, k.kube.changes)
		}
		k.step()
	}
}

func preferred(name string) nodepool.WorkerGroup {
	g := gpuGroup(name, 0, 0, 10)
	g.Priority = 1
	return g
}

func TestWorkBeyondTheQuotaOfOneGroupRunsInTheNext(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("headroom known %t", known), func(t *testing.T) {
			k := newKueueWorld(t, map[string]int{"od": 2, "spot": 4}, known, preferred("od"), gpuGroup("spot", 0, 0, 10))
			k.tasks = 5
			k.want(5, gpu(1))
			k.until(5, 2*time.Second)
			if len(k.lost) > 0 {
				t.Errorf("pods with quota were deleted: %v", k.lost)
			}
			if want := map[bool]int{true: 0, false: 1}[known]; k.pendings != want {
				t.Errorf("Kueue held back %d Workloads, want %d", k.pendings, want)
			}
			for i, change := range k.kube.changes {
				took := slices.ContainsFunc(change.Targets, func(t nodepool.Target) bool { return len(t.WorkersToDelete) > 0 })
				if took && len(change.Targets) != 2 {
					t.Errorf("patch %d takes pods back and does not grow the other group: %+v", i, change)
				}
			}
			if len(k.kube.changes) != 1+k.pendings {
				t.Errorf("%d patches: %+v", len(k.kube.changes), k.kube.changes)
			}
		})
	}
}

func TestAPartOfTheDemandRunsWithinTheQuota(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("headroom known %t", known), func(t *testing.T) {
			k := newKueueWorld(t, map[string]int{"gpu": 4}, known, gpuGroup("gpu", 0, 0, 10))
			k.tasks = 6
			k.want(6, gpu(1))
			k.until(4, 5*time.Second)
			for range 20 { // a fifth pod is tried
				k.step()
			}
			d := k.step()
			var unmet int64
			for _, u := range d.Plan.InfeasibleRequests {
				unmet += u.Count
				if !strings.Contains(u.Reason.Message, "quota") {
					t.Errorf("unmet because %q, want the quota", u.Reason.Message)
				}
			}
			if unmet != 2 || len(k.lost) > 0 {
				t.Errorf("%d are unmet, lost %v; want 2 and none", unmet, k.lost)
			}
			before := k.pendings
			for range 600 { // one minute
				k.step()
			}
			if tries := k.pendings - before; tries > 2 || known && tries > 0 {
				t.Errorf("%d tries beyond the quota in a minute", tries)
			}
		})
	}
}

func TestRunningPodsStayWhenDemandThatWaitsForQuotaEnds(t *testing.T) {
	k := newKueueWorld(t, map[string]int{"gpu": 3}, false, gpuGroup("gpu", 0, 0, 10))
	k.tasks = 3
	k.want(3, gpu(1))
	k.until(3, time.Second)
	k.tasks = 6
	k.want(3, gpu(1))
	k.step()
	k.tasks = 3
	for range 100 {
		k.step()
	}
	if got := k.running(); got["gpu"] != 3 || len(k.lost) > 0 || k.group("gpu").Replicas != 3 {
		t.Errorf("%v run, lost %v, replicas %d", got, k.lost, k.group("gpu").Replicas)
	}
}

func TestAFreedQuotaIsUsed(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("headroom known %t", known), func(t *testing.T) {
			k := newKueueWorld(t, map[string]int{"gpu": 1}, known, gpuGroup("gpu", 0, 0, 10))
			k.tasks = 3
			k.want(3, gpu(1))
			k.until(1, 5*time.Second)
			k.step()
			k.quota["gpu"] = 3
			k.admit()
			took := k.until(3, 3*time.Minute)
			if known && took > 3*time.Second {
				t.Errorf("it took %v although the headroom is known", took)
			}
		})
	}
}

func TestPreemptionForAWorkloadIsAwaited(t *testing.T) {
	k := newKueueWorld(t, map[string]int{"od": 0, "spot": 4}, false, preferred("od"), gpuGroup("spot", 0, 0, 10))
	k.tasks = 1
	k.want(1, gpu(1))
	k.step()
	for range 50 {
		k.kube.cluster.Queue.Quota.Pending.Preempting = true
		k.after(100 * time.Millisecond)
	}
	if got := k.group("od").Replicas; got != 1 || len(k.kube.changes) != 1 {
		t.Fatalf("od has %d replicas after 5 s in which Kueue evicts other work, changes %+v", got, k.kube.changes)
	}
	for range 600 {
		k.kube.cluster.Queue.Quota.Pending.Preempting = true
		if k.after(100 * time.Millisecond); k.group("od").Replicas == 0 {
			break
		}
	}
	if od, spot := k.group("od").Replicas, k.group("spot").Replicas; od != 0 || spot != 1 {
		t.Errorf("od %d, spot %d; want that the other group is used after a minute", od, spot)
	}
}

func TestAQueuedRayClusterThatKueueSuspendsIsNotWritten(t *testing.T) {
	k := newKueueWorld(t, map[string]int{"gpu": 4}, true, gpuGroup("gpu", 0, 0, 10))
	k.kube.cluster.Suspended = true
	k.want(3, gpu(1))
	d := k.after(time.Second)
	k.nothingWritten("Kueue suspended it")
	if d.Mode != nodepool.Shadow || !strings.Contains(d.Why.Message, "Kueue holds it back") {
		t.Errorf("mode %s because %s", d.Mode, d.Why.Message)
	}
}

func TestARayClusterThatIsNotProvablyElasticIsNotWritten(t *testing.T) {
	for name, queue := range map[string]nodepool.Queue{
		"no gates":          {Mark: "label", Quota: &nodepool.Quota{Elastic: true, Admitted: true}},
		"Workloads unknown": {Mark: "label", Elastic: true, Quota: &nodepool.Quota{Unread: "forbidden"}},
		"no Workloads read": {Mark: "label", Elastic: true},
		"Workload is not":   {Mark: "label", Elastic: true, Quota: &nodepool.Quota{Admitted: true}},
		"child": {Mark: "label", Elastic: true, Parent: nodepool.Owner{Kind: "RayJob", Name: "train"},
			Quota: &nodepool.Quota{Elastic: true, Admitted: true}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKueueWorld(t, map[string]int{"gpu": 4}, true, gpuGroup("gpu", 0, 0, 10))
			k.kube.cluster.Queue = queue
			k.want(3, gpu(1))
			k.after(time.Second)
			k.nothingWritten(name)
		})
	}
}

func TestAWebhookThatIsDownIsTriedOften(t *testing.T) {
	k := newKueueWorld(t, map[string]int{"gpu": 4}, true, gpuGroup("gpu", 0, 0, 10))
	k.tasks = 2
	k.want(2, gpu(1))
	k.kube.applyErr = fmt.Errorf("%w: failed calling webhook", nodepool.ErrWebhook)
	tries := 0
	k.kube.writing = func() { tries++ }
	for range 1200 {
		k.step()
	}
	if tries < 90 || tries > 125 {
		t.Errorf("%d tries in two minutes, want about one per second", tries)
	}
	k.kube.applyErr = nil
	if took := k.until(2, time.Minute); took > 2*time.Second {
		t.Errorf("served %v after the webhook is back", took)
	}
}

// TestAResourceQuotaOfTheNamespaceBoundsLaunches: the API server would refuse more pods, and another group has room.
func TestAResourceQuotaOfTheNamespaceBoundsLaunches(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 8))
	w.busy(w.pod(0))
	w.kube.cluster.NamespaceQuotas = []landing.Quota{{Name: "ResourceQuota team, less what others use,", Resource: "nvidia.com/gpu",
		Amount: raydemand.Whole(3), PodTakes: raydemand.Bundle{"gpu": raydemand.One}}}
	w.want(5, gpu(1))
	w.after(time.Second)
	if target := w.lastChange(); target.Replicas != 3 {
		t.Errorf("replicas %d, want the 3 that the quota allows", target.Replicas)
	}
	w.operate()
	d := w.after(time.Second)
	if why := d.Plan.Groups[0].Reasons; !slices.ContainsFunc(why, func(r planner.Reason) bool {
		return r.Code == planner.CodeQuota && strings.Contains(r.Message, "ResourceQuota team")
	}) {
		t.Errorf("reasons %+v, want the quota", why)
	}
}
