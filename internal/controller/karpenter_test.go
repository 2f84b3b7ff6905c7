package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

const insufficient = "NodeClaim g1-w6sh8 event: insufficient capacity, all requested instance types were unavailable"

// karpenterWorld has two equal groups, of which the first is preferred and has pods that find no node, and NodeClaims
// that are read.
func karpenterWorld(t *testing.T, wanted int64, unplaced func(*nodepool.Worker)) *world {
	t.Helper()
	w := twoGroups(t, Config{}, wanted, unplaced)
	w.kube.cluster.NodeClaims = nodepool.NodeClaimsRead
	return w
}

func (w *world) coming(launched, requested int) {
	w.group("a-first").Incoming = landing.Incoming{Launched: launched, Requested: requested}
}

func refusedBy(message string) func(*nodepool.Worker) {
	return func(p *nodepool.Worker) {
		p.NodeRefused, p.NodePromised, p.ByKarpenter = message, false, true
		p.LaunchFailed = message == insufficient
	}
}

func TestPodsThatNodeClaimsHoldProveNothingWhateverIsSaidOfThem(t *testing.T) {
	heard := 0
	w := karpenterWorld(t, 8, func(p *nodepool.Worker) {
		switch heard++; {
		case heard <= 4:
			p.NodePromised, p.ByKarpenter = true, true // Karpenter sends at most ten such Events at once
		case heard <= 6:
			refusedBy("all available instance types exceed limits for nodepool")(p)
		}
	})
	w.coming(8, 0)
	if took := w.untilServed(4 * time.Minute); took <= 4*time.Minute {
		t.Fatalf("the second group was launched after %v while NodeClaims hold all pods", took)
	}
	d, _ := w.c.Decision(key)
	if got := d.Plan.Groups[0].Reasons; !strings.Contains(fmt.Sprint(got), "Karpenter has launched nodes for 8 of them") {
		t.Errorf("reasons = %v, want the nodes on their way", got)
	}
	if w.kube.emitted(addon.ReasonGroupFailing) != 0 {
		t.Errorf("events = %v, want none", w.kube.events)
	}
}

func TestARequestedNodeClaimIsNeitherProofNorSilence(t *testing.T) {
	w := karpenterWorld(t, 2, func(*nodepool.Worker) {})
	w.coming(0, 2)
	if took := w.untilServed(2 * time.Minute); took <= 2*time.Minute {
		t.Errorf("the second group was launched after %v", took)
	}
	d, _ := w.c.Decision(key)
	if got := fmt.Sprint(d.Plan.Groups[0].Reasons); strings.Contains(got, "Karpenter has launched") {
		t.Errorf("reasons = %v, but nothing is launched", got)
	}
}

func TestKarpentersRefusalIsProofAfterItsNextRound(t *testing.T) {
	for name, c := range map[string]struct {
		state       nodepool.NodeClaimsState
		from, until time.Duration
	}{
		"nodeclaims are read":     {nodepool.NodeClaimsRead, 21 * time.Second, 21*time.Second + 2*time.Second},
		"nodeclaims are not read": {nodepool.NodeClaimsForbidden, 2 * time.Minute, 2*time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := karpenterWorld(t, 2, refusedBy("all available instance types exceed limits for nodepool (NodePool=g2)"))
			w.kube.cluster.NodeClaims = c.state
			if took := w.untilServed(5 * time.Minute); took < c.from || took > c.until {
				t.Errorf("the second group was launched after %v, want between %v and %v", took, c.from, c.until)
			}
		})
	}
}

func TestANodeClaimOfTheNextPoolCancelsAFailedLaunch(t *testing.T) {
	w := karpenterWorld(t, 2, refusedBy(insufficient))
	for range 11 {
		w.after(time.Second)
	}
	w.coming(2, 0) // Karpenter's next round: another NodePool, whose Event names no pod
	if took := w.untilServed(2 * time.Minute); took <= 2*time.Minute {
		t.Fatalf("the second group was launched %v after the next pool's NodeClaims", took)
	}
	if w.kube.emitted(addon.ReasonGroupFailing) != 0 {
		t.Errorf("events = %v, want none", w.kube.events)
	}
}

func TestAFailedLaunchThatTheNextRoundRefusesIsProofWithin15Seconds(t *testing.T) {
	w := karpenterWorld(t, 2, refusedBy(insufficient))
	for range 11 {
		w.after(time.Second)
	}
	for i := range w.kube.cluster.Workers {
		refusedBy("nodepool requirements filtered out all available instance types")(&w.kube.cluster.Workers[i])
		w.kube.cluster.Workers[i].RefusedAfterLaunch = true
	}
	if took := w.untilServed(time.Minute); took > 4*time.Second {
		t.Errorf("the second group was launched %v after the next round's word, want at most 15 s after the failure", took)
	}
}

func TestOnlyPodsBeyondTheNodeClaimsAreServedByTheNextGroup(t *testing.T) {
	w := karpenterWorld(t, 8, refusedBy("all available instance types exceed limits for nodepool (NodePool=g2)"))
	w.coming(5, 0)
	if took := w.untilServed(time.Minute); took < 21*time.Second || took > 21*time.Second+2*time.Second {
		t.Fatalf("the second group was launched after %v", took)
	}
	if got := w.group("b-second").Replicas; got != 3 {
		t.Errorf("the second group has %d replicas, want 3: five pods of the first have a node coming", got)
	}
	d, _ := w.c.Decision(key)
	if got := d.Snapshot.Groups[0].Closed; !strings.Contains(got, "3 pods, for example") {
		t.Errorf("closed = %q, want three pods named", got)
	}
}

func TestAClosedGroupOpensWhenANodeClaimIsLaunchedForIt(t *testing.T) {
	w := karpenterWorld(t, 2, refusedBy(insufficient))
	w.untilServed(time.Minute)
	if d := w.after(time.Second); d.Snapshot.Groups[0].Closed == "" {
		t.Fatal("the first group is open")
	}
	w.coming(2, 0)
	if d := w.after(time.Second); d.Snapshot.Groups[0].Closed != "" {
		t.Errorf("closed = %q although there is stock again", d.Snapshot.Groups[0].Closed)
	}
}

func TestSilenceIsNoProofWhereNodeClaimsAreNotRead(t *testing.T) {
	w := karpenterWorld(t, 2, func(*nodepool.Worker) {})
	w.kube.cluster.NodeClaims = nodepool.NodeClaimsForbidden
	if took := w.untilServed(6 * time.Minute); took < 5*time.Minute {
		t.Errorf("the second group was launched after %v, want the allocation timeout", took)
	}
}

func TestAPromiseThatNoNodeClaimKeepsIsSilence(t *testing.T) {
	w := karpenterWorld(t, 2, func(p *nodepool.Worker) { p.NodePromised, p.ByKarpenter = true, true })
	if took := w.untilServed(6 * time.Minute); took < time.Minute || took > 65*time.Second {
		t.Errorf("the second group was launched after %v, want a minute", took)
	}
}

func TestARefusalOfAPodThatRunsIsForgotten(t *testing.T) {
	w := karpenterWorld(t, 2, refusedBy("no instance type has enough resources"))
	for range 10 {
		w.after(time.Second)
	}
	for i := range w.kube.cluster.Workers {
		p := &w.kube.cluster.Workers[i]
		p.Unschedulable, p.Node, p.ScheduledAt = "", fmt.Sprint("node-", i), w.now
	}
	if took := w.untilServed(2 * time.Minute); took <= 2*time.Minute {
		t.Errorf("the second group was launched after %v although the refused pods run", took)
	}
}

func TestAWorkerWhoseNodeIsGoneServesNothing(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("a", 1, 0, 4))
	w.operate()
	w.joinAll()
	w.cycle()
	w.kube.cluster.Workers[0].NodeGone = true
	w.want(1, gpu(1))
	if d := w.after(time.Second); d.Plan.Launch["a"] != 1 {
		t.Errorf("launches %v, want a worker in place of the one on the dead node", d.Plan.Launch)
	}
}

func TestAGroupWithoutAMachineInAnyNodePoolIsOutOfStockAtOnce(t *testing.T) {
	w := karpenterWorld(t, 2, refusedBy(insufficient))
	w.group("a-first").OutOfStock = "Karpenter could not launch a machine of NodePool g1"
	if took := w.untilServed(time.Minute); took > 2*time.Second {
		t.Errorf("the second group was launched after %v, want at once", took)
	}
}

func TestAPromisedPodWaitsAlthoughOtherLaunchesFailed(t *testing.T) {
	w := karpenterWorld(t, 2, func(p *nodepool.Worker) { p.NodePromised, p.ByKarpenter = true, true })
	w.group("a-first").OutOfStock = "Karpenter could not launch a machine of NodePool g1"
	if took := w.untilServed(10 * time.Second); took <= 10*time.Second {
		t.Errorf("the second group was launched after %v, although a node is promised", took)
	}
}
