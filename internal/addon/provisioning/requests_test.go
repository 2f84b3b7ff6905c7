package provisioning

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// asking is a RayCluster whose group gpu asks for ProvisioningRequests, with the given ones.
func asking(requests ...nodepool.ProvisioningRequest) *nodepool.Cluster {
	return &nodepool.Cluster{
		UID: "uid", Groups: []nodepool.WorkerGroup{{Name: "gpu", Provisions: true}, {Name: "cpu"}},
		Provisioning: &nodepool.Provisioning{Requests: requests},
	}
}

// made is a request for four pods in a state that began when the test did.
func made(state nodepool.ProvisioningState) nodepool.ProvisioningRequest {
	return nodepool.ProvisioningRequest{Name: Name("uid", "gpu", 4), Group: "gpu", Pods: 4, CreatedAt: start,
		State: state, Since: start}
}

// text is a decision as one line: the launches of gpu, what it waits for or lacks, and the changes.
func text(d Decision) string {
	line := fmt.Sprintf("launch %d", d.Launch["gpu"])
	for _, why := range []string{d.Waits["gpu"], d.Without["gpu"]} {
		if why != "" {
			line += "; " + strings.ReplaceAll(why, Name("uid", "gpu", 4), "R4")
		}
	}
	for _, c := range d.Changes {
		line += "; " + c.Kind
		if c.Request.Pods > 0 {
			line += fmt.Sprintf(" %d", c.Request.Pods)
		}
		if c.Pod.Pod != "" {
			line += " " + c.Pod.Pod
		}
	}
	return line
}

func expect(t *testing.T, when string, d Decision, want string) {
	t.Helper()
	if got := text(d); got != want {
		t.Errorf("%s:\n got %s\nwant %s", when, got, want)
	}
}

func TestSingleTasksDoNotWaitForEachOthersNodes(t *testing.T) {
	launch, r := map[string]int{"gpu": 4}, Requests{}
	expect(t, "tasks", r.Decide(start, asking(), launch, false), "launch 4")
	slices := asking()
	slices.Groups[0].NumOfHosts = 2
	expect(t, "replicas of several hosts", r.Decide(start, slices, launch, false),
		"launch 0; waits for ProvisioningRequest R4: it is being created; ask 4")
}

// The nodes of a request that is deleted belong to nobody.
func TestARequestStaysUntilTheOperatorHasCreatedItsPods(t *testing.T) {
	cluster, r := asking(made(nodepool.CapacityProvisioned)), Requests{}
	cluster.Groups[0].Replicas = 4
	expect(t, "patched", r.Decide(start, cluster, nil, false), "launch 0")
	expect(t, "a slow operator", r.Decide(start.Add(2*calm), cluster, nil, false), "launch 0")
	cluster.Groups[0].Replicas = 0
	expect(t, "nobody needs them", r.Decide(start.Add(2*calm), cluster, nil, false), "launch 0")
	expect(t, "nobody needs them", r.Decide(start.Add(3*calm), cluster, nil, false), "launch 0; release 4")
}

func TestAGangAsksForAllItsNodesAndOnePodDoesNot(t *testing.T) {
	for _, c := range []struct {
		when    string
		cluster func(*nodepool.Cluster)
		launch  int
		want    string
	}{
		{"one pod", nil, 1, "launch 1"},
		{"a gang", nil, 4, "launch 0; waits for ProvisioningRequest R4: it is being created; ask 4"},
		{"no annotation", func(c *nodepool.Cluster) { c.Groups[0].Provisions = false }, 4, "launch 4"},
		{"without the flag", func(c *nodepool.Cluster) { c.Provisioning = nil }, 4, "launch 4"},
		{"behind Kueue", func(c *nodepool.Cluster) { c.Queue.Mark = "label" }, 4,
			"launch 4; Kueue's admission check provisioning asks for the nodes of a queued RayCluster"},
		{"nodes with room", rooms(4), 4, "launch 4"},
		{"nodes with too little room", rooms(3), 4,
			"launch 0; waits for ProvisioningRequest R4: it is being created; ask 4"},
	} {
		cluster := asking()
		if c.cluster != nil {
			c.cluster(cluster)
		}
		var r Requests
		expect(t, c.when, r.Decide(start, cluster, map[string]int{"gpu": c.launch}, true), c.want)
	}
}

// rooms gives the cluster one node with room for so many pods, and a pool that adds any number.
func rooms(pods int64) func(*nodepool.Cluster) {
	return func(c *nodepool.Cluster) {
		one := int64(1)
		free := landing.Quantities{"nvidia.com/gpu": raydemand.Whole(pods), "pods": raydemand.Whole(110)}
		c.Groups[0].Kind = &landing.Pod{Name: "gpu", Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}}
		c.Places = []landing.Place{
			{Node: "a", Nodes: &one, Free: free, Accepts: []string{"gpu"}},
			{Pool: "p", New: true, AnySize: true, Accepts: []string{"gpu"}},
		}
	}
}

func TestALaunchWaitsForItsRequestAndNotForEver(t *testing.T) {
	for _, c := range []struct {
		when    string
		request nodepool.ProvisioningRequest
		at      time.Duration
		launch  int
		want    string
	}{
		{"asked", made(nodepool.CapacityAsked), time.Minute, 4,
			"launch 0; waits for ProvisioningRequest R4: the Cluster Autoscaler has not looked at it"},
		{"more is wanted", made(nodepool.CapacityAsked), time.Minute, 6,
			"launch 0; waits for ProvisioningRequest R4: the Cluster Autoscaler has not looked at it"},
		{"too late", made(nodepool.CapacityAsked), patience, 4,
			"launch 4; ProvisioningRequest R4 brought no nodes within 15 minutes; release 4"},
		{"provisioned", made(nodepool.CapacityProvisioned), time.Minute, 4, "launch 4"},
		{"provisioned, and more is wanted", made(nodepool.CapacityProvisioned), time.Minute, 6,
			"launch 4; waits for the pods of ProvisioningRequest R4 to get their nodes"},
		{"failed", made(nodepool.CapacityFailed), time.Minute, 4,
			"launch 4; ProvisioningRequest R4: the capacity is failed"},
		{"failed long ago", made(nodepool.CapacityFailed), pause, 0, "launch 0; release 4"},
		{"expired", made(nodepool.CapacityLost), time.Minute, 4,
			"launch 4; ProvisioningRequest R4: the capacity is lost"},
	} {
		var r Requests
		cluster := asking(c.request)
		expect(t, c.when, r.Decide(start.Add(c.at), cluster, map[string]int{"gpu": c.launch}, true), c.want)
	}
}

func TestARequestThatNobodyNeedsIsDeletedAfterAWhile(t *testing.T) {
	for _, state := range []nodepool.ProvisioningState{nodepool.CapacityAsked, nodepool.CapacityProvisioned} {
		var r Requests
		cluster := asking(made(state))
		expect(t, "at once", r.Decide(start, cluster, nil, true), "launch 0")
		expect(t, "soon", r.Decide(start.Add(calm/2), cluster, nil, true), "launch 0")
		expect(t, "later", r.Decide(start.Add(calm), cluster, nil, true), "launch 0; release 4")
	}
}

// A launch must not wait for ever for what never happens, and not begin to wait again when its request gets smaller.
func TestALaunchWaitsFifteenMinutesWhateverFor(t *testing.T) {
	deleting := made(nodepool.CapacityAsked)
	deleting.Deleting = true
	smaller := func(at time.Duration) *nodepool.Cluster {
		request := made(nodepool.CapacityAsked)
		request.CreatedAt = start.Add(at)
		return asking(request)
	}
	for when, c := range map[string]struct {
		cluster func(at time.Duration) *nodepool.Cluster
		what    string
	}{
		"it cannot be created":    {func(time.Duration) *nodepool.Cluster { return asking() }, "R4: it is being created"},
		"its deletion is blocked": {func(time.Duration) *nodepool.Cluster { return asking(deleting) }, "R4"},
		"each is made again":      {smaller, "R4: the Cluster Autoscaler has not looked at it"},
	} {
		var r Requests
		launch := map[string]int{"gpu": 4}
		for at := time.Duration(0); at < patience; at += time.Minute {
			if d := r.Decide(start.Add(at), c.cluster(at), launch, true); d.Waits["gpu"] == "" {
				t.Fatalf("%s: launched after %v", when, at)
			}
		}
		d := r.Decide(start.Add(patience), c.cluster(patience), launch, true)
		if !strings.HasSuffix(strings.ReplaceAll(d.Without["gpu"], Name("uid", "gpu", 4), "R4"), c.what) ||
			d.Launch["gpu"] != 4 || len(d.Changes) > 0 {
			t.Errorf("%s: %s", when, text(d))
		}
		if d := r.Decide(start.Add(patience+time.Second), c.cluster(patience), launch, true); d.Launch["gpu"] != 4 {
			t.Errorf("%s: then: %s", when, text(d))
		}
	}
}

// The launch may change before a process sees the request that it made. Nodes for both would be twice as many.
// TestAnEarlierWaitCountsForNothing has a group whose annotation is removed while its launch waits, and set again later.
func TestAnEarlierWaitCountsForNothing(t *testing.T) {
	var r Requests
	gone := asking()
	gone.Groups = gone.Groups[1:]
	expect(t, "before", r.Decide(start, asking(), map[string]int{"gpu": 4}, true),
		"launch 0; waits for ProvisioningRequest R4: it is being created; ask 4")
	expect(t, "meanwhile", r.Decide(start.Add(time.Minute), gone, nil, true), "launch 0")
	expect(t, "again", r.Decide(start.Add(2*patience), asking(), map[string]int{"gpu": 4}, true),
		"launch 0; waits for ProvisioningRequest R4: it is being created; ask 4")
}

func TestAGroupKeepsOneRequest(t *testing.T) {
	var r Requests
	second := made(nodepool.CapacityAsked)
	second.Name, second.Pods = Name("uid", "gpu", 6), 6
	expect(t, "two requests", r.Decide(start, asking(made(nodepool.CapacityAsked), second), map[string]int{"gpu": 6}, true),
		"launch 0; waits for ProvisioningRequest R4: the Cluster Autoscaler has not looked at it; release 6")
}

func TestAfterARefusalAGangIsLaunchedAndNotAskedForAgain(t *testing.T) {
	var r Requests
	r.Refused(start, "gpu", errors.New("forbidden"))
	launch := map[string]int{"gpu": 4}
	expect(t, "refused", r.Decide(start.Add(time.Second), asking(), launch, true),
		"launch 4; its ProvisioningRequest cannot be created: forbidden")
	expect(t, "after the pause", r.Decide(start.Add(pause), asking(), launch, true),
		"launch 0; waits for ProvisioningRequest R4: it is being created; ask 4")
}

func TestLaunchesWaitForTheFirstReadingOnlyAWhile(t *testing.T) {
	var r Requests
	cluster := asking()
	cluster.Provisioning.Unread = "unread"
	launch := map[string]int{"gpu": 4}
	expect(t, "first", r.Decide(start, cluster, launch, true),
		"launch 0; waits for the first reading of ProvisioningRequests: unread")
	expect(t, "later", r.Decide(start.Add(calm), cluster, launch, true), "launch 4; unread")
}

func TestNewPodsUseTheCapacityAndLoseTheMarkWithIt(t *testing.T) {
	pod := func(name string, created time.Duration, with func(*nodepool.Worker)) nodepool.Worker {
		w := nodepool.Worker{Pod: name, Group: "gpu", CreatedAt: start.Add(created)}
		if with != nil {
			with(&w)
		}
		return w
	}
	consumes := func(w *nodepool.Worker) { w.Consumes = Name("uid", "gpu", 4) }
	placed := func(w *nodepool.Worker) { consumes(w); w.Node = "n" }
	foreign := func(w *nodepool.Worker) { w.Consumes = "mine" }
	for _, c := range []struct {
		when  string
		state nodepool.ProvisioningState
		pods  []nodepool.Worker
		want  string
	}{
		{"a new one", nodepool.CapacityProvisioned, []nodepool.Worker{pod("new", time.Second, nil)},
			"launch 0; consume 4 new"},
		{"an older one", nodepool.CapacityProvisioned, []nodepool.Worker{pod("old", -time.Second, nil)}, "launch 0"},
		{"before the nodes are there", nodepool.CapacityAsked, []nodepool.Worker{pod("new", time.Second, nil)},
			"launch 0"},
		{"the capacity is lost", nodepool.CapacityLost, []nodepool.Worker{pod("new", time.Second, consumes)},
			"launch 0; forget new"},
		{"a user's own mark", nodepool.CapacityLost, []nodepool.Worker{pod("new", time.Second, foreign)}, "launch 0"},
		{"all have nodes", nodepool.CapacityProvisioned, []nodepool.Worker{pod("a", 1, placed), pod("b", 1, placed),
			pod("c", 1, placed), pod("d", 1, placed)}, "launch 0; release 4"},
		{"one more than asked for", nodepool.CapacityProvisioned, []nodepool.Worker{pod("a", 1, consumes),
			pod("b", 1, consumes), pod("c", 1, consumes), pod("d", 1, consumes), pod("e", 1, nil)}, "launch 0"},
		{"two more than there is capacity for", nodepool.CapacityProvisioned, []nodepool.Worker{pod("a", 1, consumes),
			pod("b", 1, consumes), pod("c", 1, consumes), pod("d", 1, nil), pod("e", 1, nil)}, "launch 0; consume 4 d"},
	} {
		var r Requests
		cluster := asking(made(c.state))
		cluster.Workers = c.pods
		expect(t, c.when, r.Decide(start.Add(time.Minute), cluster, nil, true), c.want)
	}
}

func TestHandBackTakesEverythingBack(t *testing.T) {
	cluster := asking(made(nodepool.CapacityProvisioned))
	cluster.Workers = []nodepool.Worker{{Pod: "new", Group: "gpu", Consumes: Name("uid", "gpu", 4)}}
	expect(t, "handed back", HandBack(cluster), "launch 0; release 4; forget new")
}
