package nodes

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// said is an Event that a component wrote about a pod or a NodeClaim at a time after noon.
func said(after time.Duration, component, reason, kind, name, message string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "ml", Name: component + reason + name, ResourceVersion: "1"},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "ml", Name: name, UID: types.UID(name + "-uid")},
		Source:         corev1.EventSource{Component: component}, Reason: reason, Message: message,
		LastTimestamp: metav1.NewTime(noon.Add(after)),
	}
}

// listening keeps Events without an API server.
func listening(events ...*corev1.Event) *autoscalerEvents {
	p := newAutoscalerEvents(nil, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	for source := range nodeAutoscalers {
		f := &feed{p: p, source: source}
		p.feeds = append(p.feeds, f)
		list := make([]any, len(events))
		for i := range events {
			list[i] = events[i]
		}
		_ = f.store().Replace(list, "")
	}
	return p
}

func keptEvents(p *autoscalerEvents) (kept int) {
	for _, f := range p.feeds {
		kept += f.kept
	}
	return kept
}

// heardOf is what a cluster with one unschedulable pod "w" is shown.
func heardOf(p *autoscalerEvents) (refused string, promised, seen bool) {
	cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"},
		Workers: []nodepool.Worker{{Pod: "w", UID: "w-uid", Unschedulable: noNode}, {Pod: "placed", UID: "placed-uid", Node: "n"}}}
	p.AddTo(&cluster)
	return cluster.Workers[0].NodeRefused, cluster.Workers[0].NodePromised, cluster.ProvisionersSeen
}

func TestTheLatestWordOfANodeAutoscalerCounts(t *testing.T) {
	const backoff = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
	const incompatible = `Failed to schedule pod, incompatible with nodepool "gpu", no instance type met all requirements`
	triggered := said(time.Second, landing.FromClusterAutoscaler, "TriggeredScaleUp", "Pod", "w", "pod triggered scale-up: [{gpu 0->1 (max: 4)}]")
	nominated := said(time.Second, landing.FromKarpenter, "Nominated", "Pod", "w", "Pod should schedule on: nodeclaim/gpu-x7f2k")
	other := said(time.Minute, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", backoff)
	other.InvolvedObject.UID = "of-an-earlier-pod"
	series := said(0, landing.FromKarpenter, "FailedScheduling", "Pod", "w", incompatible)
	series.Source, series.ReportingController = corev1.EventSource{}, landing.FromKarpenter
	series.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(noon.Add(time.Minute))}
	for name, c := range map[string]struct {
		events   []*corev1.Event
		refused  string
		promised bool
	}{
		"silence":                        {nil, "", false},
		"nominated by EKS Auto Mode":     {[]*corev1.Event{said(0, "eks-auto-mode/compute", "Nominated", "Pod", "w", "Pod should schedule on: nodeclaim/gpu-inf-kqkq6")}, "", true},
		"refused by EKS Auto Mode":       {[]*corev1.Event{said(0, "eks-auto-mode/compute", "FailedScheduling", "Pod", "w", incompatible)}, incompatible, false},
		"refused in AKS":                 {[]*corev1.Event{said(0, "karpenter-events", "FailedScheduling", "Pod", "w", incompatible)}, incompatible, false},
		"provisioned in ACK":             {[]*corev1.Event{said(0, "goatscaler", "ProvisionNode", "Pod", "w", "provision node")}, "", true},
		"a node is on its way":           {[]*corev1.Event{triggered}, "", true},
		"refused":                        {[]*corev1.Event{said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", backoff)}, backoff, false},
		"promised, then refused":         {[]*corev1.Event{triggered, said(9*time.Second, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", backoff)}, backoff, false},
		"refused, then promised":         {[]*corev1.Event{triggered, said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", backoff)}, "", true},
		"nominated":                      {[]*corev1.Event{nominated}, "", true},
		"nominated, then refused":        {[]*corev1.Event{nominated, series}, incompatible, false},
		"the scheduler's own word":       {[]*corev1.Event{said(0, "default-scheduler", "FailedScheduling", "Pod", "w", "0/3 nodes are available")}, "", false},
		"another reason":                 {[]*corev1.Event{said(0, landing.FromClusterAutoscaler, "ScaleDown", "Pod", "w", "deleting pod")}, "", false},
		"about an earlier pod":           {[]*corev1.Event{triggered, other}, "", true},
		"the claim named has no machine": {[]*corev1.Event{nominated, said(5*time.Second, landing.FromKarpenter, "InsufficientCapacityError", "NodeClaim", "gpu-x7f2k", "NodeClaim gpu-x7f2k event: out of p5.48xlarge")}, "NodeClaim gpu-x7f2k event: out of p5.48xlarge", false},
		"another claim has no machine":   {[]*corev1.Event{nominated, said(5*time.Second, landing.FromKarpenter, "InsufficientCapacityError", "NodeClaim", "gpu-zzzzz", "none")}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			refused, promised, seen := heardOf(listening(c.events...))
			spoken := c.promised || c.refused != ""
			if refused != c.refused || promised != c.promised || seen != spoken {
				t.Errorf("refused %q, promised %v, seen %v; want %q, %v, %v", refused, promised, seen, c.refused, c.promised, spoken)
			}
		})
	}
}

func TestAPromiseOfANodeHasItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		events []*corev1.Event
		want   time.Time
	}{
		"the last one": {[]*corev1.Event{
			said(time.Second, landing.FromClusterAutoscaler, "TriggeredScaleUp", "Pod", "w", "pod triggered scale-up: [{gpu 0->1 (max: 4)}]"),
			said(time.Minute, landing.FromClusterAutoscaler, "TriggeredScaleUp", "Pod", "w", "pod triggered scale-up: [{spot 0->1 (max: 4)}]"),
		}, noon.Add(time.Minute)},
		"none after a refusal": {[]*corev1.Event{
			said(time.Second, landing.FromClusterAutoscaler, "TriggeredScaleUp", "Pod", "w", "pod triggered scale-up: [{gpu 0->1 (max: 4)}]"),
			said(time.Minute, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", "1 in backoff after failed scale-up"),
		}, time.Time{}},
	} {
		cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, Workers: []nodepool.Worker{{Pod: "w", UID: "w-uid", Unschedulable: noNode}}}
		listening(c.events...).AddTo(&cluster)
		if got := cluster.Workers[0].PromisedAt; !got.Equal(c.want) {
			t.Errorf("%s: promised at %v, want %v", name, got, c.want)
		}
	}
}

func TestEventsAreFollowedForgottenAndReadAgainOnceTheyAreAllowed(t *testing.T) {
	client := forbiddenEvents()
	besideEvents(t, nil, map[string]*fakeEvents{"": client}, func(p *autoscalerEvents) {
		var cluster nodepool.Cluster
		p.AddTo(&cluster)
		if cluster.ProvisionersSeen || len(cluster.Findings) != 1 || cluster.Findings[0].Code != EventsForbidden {
			t.Errorf("while Events are forbidden: seen %v, findings %+v", cluster.ProvisionersSeen, cluster.Findings)
		}
		client.list = []corev1.Event{*said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", "max node group size reached")}
		client.forbidden.Store(false)
		elapse(2 * reflector.ForbiddenPause)
		refused, _, seen := heardOf(p)
		if refused != "max node group size reached" || !seen {
			t.Errorf("once they are allowed: refused %q, seen %v", refused, seen)
		}
		must(t, client.stream.Action(watch.Added, said(time.Second, landing.FromClusterAutoscaler, "TriggeredScaleUp", "Pod", "w", "up")))
		synctest.Wait()
		if _, promised, _ := heardOf(p); !promised {
			t.Error("an Event that was added is not heard")
		}
		for _, event := range []*corev1.Event{said(time.Second, landing.FromClusterAutoscaler, "TriggeredScaleUp", "Pod", "w", "up"), &client.list[0]} {
			must(t, client.stream.Action(watch.Deleted, event))
		}
		synctest.Wait()
		if kept := keptEvents(p); kept != 0 {
			t.Errorf("%d Events are kept although all have expired", kept)
		}
		if diff := cmp.Diff(map[string]bool{
			"source=cluster-autoscaler": true, "source=karpenter": true, "source=karpenter-events": true,
			"source=eks-auto-mode/compute": true, "source=goatscaler": true,
		}, client.selected()); diff != "" {
			t.Errorf("field selectors: %s", diff)
		}
	})
}

// An autoscaler that nobody recognises is silent for ever, and so is one that was never heard; one that spoke once is
// known to speak.
func TestSilenceProvesNothingBeforeTheFirstEventOfANodeAutoscaler(t *testing.T) {
	elsewhere := said(0, landing.FromClusterAutoscaler, "TriggeredScaleUp", "Pod", "another", "up")
	for name, c := range map[string]struct {
		events []*corev1.Event
		seen   bool
	}{
		"nobody has spoken":      {nil, false},
		"one of an unknown name": {[]*corev1.Event{said(0, "unheard-of", "TriggeredScaleUp", "Pod", "another", "up")}, false},
		"words of other things":  {[]*corev1.Event{said(0, landing.FromKarpenter, "Unconsolidatable", "Pod", "another", "-"), said(0, landing.FromKarpenter, "InsufficientCapacityError", "NodeClaim", "c", "none")}, false},
		"of another pod":         {[]*corev1.Event{elsewhere}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := listening(c.events...)
			if _, _, seen := heardOf(p); seen != c.seen {
				t.Errorf("silence is proof: %v, want %v", seen, c.seen)
			}
			for _, f := range p.feeds {
				_ = f.store().Replace(nil, "") // the Events expire
			}
			if _, _, seen := heardOf(p); seen != c.seen {
				t.Errorf("silence is proof after the Events have expired: %v, want %v", seen, c.seen)
			}
		})
	}
}

// besideEvents runs test beside the reading of Events, in synctest's time.
func besideEvents(t *testing.T, namespaces []string, clients map[string]*fakeEvents, test func(p *autoscalerEvents)) {
	synctest.Test(t, func(t *testing.T) {
		for _, client := range clients {
			client.selectors, client.stream = make(chan string, 100), watch.NewBroadcaster(100, watch.WaitIfChannelFull)
			defer client.stream.Shutdown()
		}
		p := newAutoscalerEvents(func(namespace string) eventClient { return clients[namespace] }, namespaces, slog.New(slog.DiscardHandler))
		beside(t, func() { test(p) }, p.Start)
	})
}

func forbiddenEvents() *fakeEvents {
	f := &fakeEvents{}
	f.forbidden.Store(true)
	return f
}

func TestANamespaceWhoseEventsAreForbiddenSilencesNoOther(t *testing.T) {
	ml := &fakeEvents{list: []corev1.Event{*said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", "max node group size reached")}}
	clients := map[string]*fakeEvents{"ml": ml, "closed": forbiddenEvents(), "default": forbiddenEvents()}
	besideEvents(t, []string{"ml", "closed"}, clients, func(p *autoscalerEvents) {
		for namespace, want := range map[string]struct {
			refused string
			seen    bool
			codes   int
		}{"ml": {"max node group size reached", true, 0}, "closed": {"", false, 1}} {
			cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: namespace, Name: "llm"}, Workers: []nodepool.Worker{{Pod: "w", UID: "w-uid", Unschedulable: noNode}}}
			p.AddTo(&cluster)
			if cluster.Workers[0].NodeRefused != want.refused || cluster.ProvisionersSeen != want.seen || len(cluster.Findings) != want.codes {
				t.Errorf("namespace %s: refused %q, seen %v, findings %+v; want %+v", namespace, cluster.Workers[0].NodeRefused, cluster.ProvisionersSeen, cluster.Findings, want)
			}
		}
		ml.forbidden.Store(true)
		ml.stream.Shutdown() // what was read is read again, and may not be
		elapse(2 * reflector.ForbiddenPause)
		if refused, _, seen := heardOf(p); refused != "" || seen {
			t.Errorf("after the right was withdrawn: refused %q, seen %v", refused, seen)
		}
	})
}

func TestWhatFailsOfANodeClaimIsHeardInTheNamespaceDefault(t *testing.T) {
	const none = "NodeClaim gpu-x7f2k event: out of p5.48xlarge"
	failed := said(5*time.Second, landing.FromKarpenter, "InsufficientCapacityError", "NodeClaim", "gpu-x7f2k", none)
	failed.Namespace, failed.InvolvedObject.Namespace = "default", ""
	foreign := said(0, landing.FromKarpenter, "FailedScheduling", "Pod", "not-ours", "-")
	foreign.Namespace = "default"
	clients := map[string]*fakeEvents{
		"ml":      {list: []corev1.Event{*said(0, landing.FromKarpenter, "Nominated", "Pod", "w", "Pod should schedule on: nodeclaim/gpu-x7f2k")}},
		"default": {list: []corev1.Event{*failed, *foreign}},
	}
	besideEvents(t, []string{"ml"}, clients, func(p *autoscalerEvents) {
		if refused, promised, seen := heardOf(p); refused != none || promised || !seen {
			t.Errorf("refused %q, promised %v, seen %v; want what was said of the claim", refused, promised, seen)
		}
		if kept := keptEvents(p); kept != 2 {
			t.Errorf("kept %d Events, want the pod's and the claim's alone", kept)
		}
		want := map[string]bool{"source=karpenter,involvedObject.kind=NodeClaim": true, "source=karpenter-events,involvedObject.kind=NodeClaim": true, "source=eks-auto-mode/compute,involvedObject.kind=NodeClaim": true}
		if diff := cmp.Diff(want, clients["default"].selected()); diff != "" {
			t.Errorf("field selectors in default: %s", diff)
		}
	})
}

func TestARefusalAfterALaunchIsTheWordOfALaterRound(t *testing.T) {
	const exhausted = "Failed to schedule pod, nodepool requirements filtered out all available instance types"
	nominated := said(time.Second, landing.FromKarpenter, "Nominated", "Pod", "w", "Pod should schedule on: nodeclaim/dry1-x7f2k")
	failed := said(2*time.Second, landing.FromKarpenter, "InsufficientCapacityError", nodeClaim, "dry1-x7f2k", "NodeClaim dry1-x7f2k event: insufficient capacity")
	refused := said(12*time.Second, landing.FromKarpenter, "FailedScheduling", "Pod", "w", exhausted)
	for name, c := range map[string]struct {
		events      []*corev1.Event
		afterLaunch bool
	}{
		"refused at once":            {[]*corev1.Event{refused}, false},
		"the launch failed":          {[]*corev1.Event{nominated, failed}, false},
		"and the next round refuses": {[]*corev1.Event{nominated, failed, refused}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, Workers: []nodepool.Worker{{Pod: "w", UID: "w-uid", Unschedulable: noNode}}}
			listening(c.events...).AddTo(&cluster)
			w := cluster.Workers[0]
			if w.NodeRefused == "" || w.RefusedAfterLaunch != c.afterLaunch || !w.ByKarpenter {
				t.Errorf("refused %q, after a failed launch %t, by Karpenter %t", w.NodeRefused, w.RefusedAfterLaunch, w.ByKarpenter)
			}
		})
	}
}
