package observe

import (
	"fmt"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// scene is a RayCluster whose groups have pods with quota and pods that wait.
type scene struct {
	cluster nodepool.Cluster
	members []Member
}

func (s *scene) group(name string, running, waiting, hosts int) {
	pods := running + waiting
	s.cluster.Groups = append(s.cluster.Groups, nodepool.WorkerGroup{Name: name, Replicas: pods / hosts, Max: 100, NumOfHosts: hosts})
	for i := range pods {
		pod := nodepool.Worker{Pod: fmt.Sprintf("%s-%d", name, i), Group: name, Gated: i >= running, CreatedAt: noon.Add(time.Duration(i) * time.Second)}
		if hosts > 1 {
			pod.Replica = fmt.Sprintf("%s-r%d", name, i/hosts)
		}
		s.members = append(s.members, Member{Worker: &pod})
	}
	q := s.cluster.Queue.Quota
	if q == nil {
		q = &nodepool.Quota{Elastic: true, Admitted: true, Granted: map[string]int{}, Unbounded: "unknown",
			Pending: &nodepool.PendingWorkload{Name: "w", Version: "1", Pods: map[string]int{}, Message: "no quota", Judged: true}}
		s.cluster.Queue.Quota = q
	}
	q.Granted[name], q.Pending.Pods[name] = running, pods
}

func (s *scene) bound(group string, amount int64) {
	q := s.cluster.Queue.Quota
	q.Unbounded = ""
	q.Bounds = append(q.Bounds, landing.Quota{Name: "flavor", Resource: "nvidia.com/gpu", Amount: raydemand.Whole(amount),
		PodTakes: map[string]raydemand.Amount{group: raydemand.One}})
}

func (s *scene) back(r *QuotaRefusals) (pods []string) {
	for _, m := range s.members {
		if r.TakenBack(m.Pod) {
			pods = append(pods, m.Pod)
		}
	}
	return pods
}

func TestWhatIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		scene func(*scene)
		after time.Duration
		want  string
	}{
		"half of what waits":              {func(s *scene) { s.group("a", 3, 3, 1) }, 0, "[a-4 a-5]"},
		"the only one that waits":         {func(s *scene) { s.group("a", 3, 1, 1) }, 0, "[a-3]"},
		"what exceeds the headroom":       {func(s *scene) { s.group("a", 1, 4, 1); s.bound("a", 4) }, 0, "[a-4]"},
		"half, if the headroom is larger": {func(s *scene) { s.group("a", 1, 4, 1); s.bound("a", 9) }, 0, "[a-3 a-4]"},
		"whole replicas":                  {func(s *scene) { s.group("a", 2, 6, 2) }, 0, "[a-4 a-5 a-6 a-7]"},
		"all groups, if none is named":    {func(s *scene) { s.group("a", 0, 2, 1); s.group("b", 0, 2, 1) }, 0, "[a-1 b-1]"},
		"nothing while Kueue has not seen the replicas": {func(s *scene) {
			s.group("a", 3, 3, 1)
			s.cluster.Groups[0].Replicas = 4
		}, time.Hour, "[]"},
		"nothing while it is suspended": {func(s *scene) {
			s.group("a", 0, 3, 1)
			s.cluster.Suspended = true
		}, time.Hour, "[]"},
		"nothing of an old message": {func(s *scene) {
			s.group("a", 3, 3, 1)
			s.cluster.Queue.Quota.Pending.Judged = false
		}, quotaPatience - 1, "[]"},
		"a Workload that Kueue does not look at": {func(s *scene) {
			s.group("a", 3, 3, 1)
			s.cluster.Queue.Quota.Pending.Judged, s.cluster.Queue.Quota.Pending.Message = false, ""
		}, quotaPatience, "[a-4 a-5]"},
		"nothing while a pod is missing": {func(s *scene) {
			s.group("a", 3, 3, 1)
			s.members = s.members[:5]
		}, quotaPatience - 1, "[]"},
		"those that exist after a while": {func(s *scene) {
			s.group("a", 3, 3, 1)
			s.members = s.members[:5]
		}, quotaPatience, "[a-4]"},
		"nothing during a preemption": {func(s *scene) {
			s.group("a", 3, 3, 1)
			s.cluster.Queue.Quota.Pending.Preempting = true
		}, preemptionPatience - 1, "[]"},
		"nothing without a pending Workload": {func(s *scene) {
			s.group("a", 3, 3, 1)
			s.cluster.Queue.Quota.Pending = nil
		}, time.Hour, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := scene{}, QuotaRefusals{}
			c.scene(&s)
			r.Observe(noon, s.cluster, s.members)
			if c.after > 0 {
				r.Observe(noon.Add(c.after), s.cluster, s.members)
			}
			if got := fmt.Sprint(s.back(&r)); got != c.want {
				t.Errorf("takes back %s, want %s", got, c.want)
			}
		})
	}
}

func TestARefusalIsAnsweredOnce(t *testing.T) {
	s, r := scene{}, QuotaRefusals{}
	s.group("a", 0, 8, 1)
	for i := range 5 {
		r.Observe(noon.Add(time.Duration(i)*time.Second), s.cluster, s.members)
	}
	if got := len(s.back(&r)); got != 4 {
		t.Errorf("%d pods are taken back, want half of 8 however long it lasts", got)
	}
}

func TestPausesGrowWithEachRefusalAndEnd(t *testing.T) {
	s, r := scene{}, QuotaRefusals{}
	s.group("a", 0, 8, 1)
	now := noon
	for i, want := range []time.Duration{30, 60, 120, 240, 480, 600, 600} {
		s.cluster.Queue.Quota.Pending.Version = fmt.Sprint(i)
		r.Observe(now, s.cluster, s.members)
		bounds := r.Bounds(now.Add(want*time.Second - 1))
		if len(bounds) != 1 || bounds[0].Amount != raydemand.Whole(4) || bounds[0].Why != "Kueue: no quota" {
			t.Fatalf("refusal %d: after almost %d s: %+v", i, want, bounds)
		}
		now = now.Add(want * time.Second)
		if bounds := r.Bounds(now); len(bounds) > 0 {
			t.Fatalf("refusal %d: after %d s: %+v", i, want, bounds)
		}
	}
	now = now.Add(longestPause)
	s.cluster.Queue.Quota.Pending.Version = "much later"
	r.Observe(now, s.cluster, s.members)
	if len(r.Bounds(now.Add(shortestPause))) > 0 {
		t.Error("the pause does not start anew after a long time")
	}
}

func TestAKnownHeadroomIsTrustedAgainSoon(t *testing.T) {
	s, r := scene{}, QuotaRefusals{}
	s.group("a", 0, 8, 1)
	s.bound("a", 20)
	r.Observe(noon, s.cluster, s.members)
	if len(r.Bounds(noon.Add(explainedPause-1))) != 1 || len(r.Bounds(noon.Add(explainedPause))) != 0 {
		t.Errorf("bounds %+v, want them for %v", r.Bounds(noon), explainedPause)
	}
}

// play plays a Kueue whose quota for a group is unknown, until the group asks for no more. It returns how many pods run
// then, and how many Workloads Kueue refused.
func play(t *testing.T, demand, granted, hosts int) (running, refused int) {
	t.Helper()
	r, now := QuotaRefusals{}, noon
	observe := func(running, waiting int) (back int) {
		s := scene{}
		s.group("a", running, waiting, hosts)
		s.cluster.Queue.Quota.Pending.Version = now.String()
		if waiting == 0 {
			s.cluster.Queue.Quota.Pending = nil
		}
		r.Observe(now, s.cluster, s.members)
		now = now.Add(100 * time.Millisecond)
		return len(s.back(&r))
	}
	for {
		asked := demand
		for _, bound := range r.Bounds(now) {
			asked = min(asked, int(bound.Amount/raydemand.One))
		}
		if asked <= running {
			return running, refused
		}
		for ; asked > granted; refused++ {
			back := observe(running, asked-running)
			if back == 0 {
				t.Fatalf("%d wait without end, %d run", asked-running, running)
			}
			asked -= back
		}
		running = asked
		observe(running, 0)
	}
}

func TestAFewRefusalsFindTheQuota(t *testing.T) {
	for _, c := range []struct{ demand, granted, hosts, running, refused int }{
		{5, 2, 1, 2, 2}, {5, 4, 1, 4, 1}, {6, 4, 1, 4, 2}, {6, 0, 1, 0, 3}, {100, 37, 1, 37, 5}, {1000, 999, 1, 999, 1},
		{8, 5, 2, 4, 2}, {12, 7, 4, 4, 2}, {5, 5, 1, 5, 0},
	} {
		running, refused := play(t, c.demand, c.granted, c.hosts)
		if running != c.running || refused != c.refused {
			t.Errorf("%d wanted, %d granted, %d hosts: %d run after %d refusals, want %d after %d",
				c.demand, c.granted, c.hosts, running, refused, c.running, c.refused)
		}
	}
}
