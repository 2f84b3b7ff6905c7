package kube

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// fakeEvents is an API server's Events: a list, and a stream of what changes. Unlike a real one it hands every feed all of
// them, whatever the field selector.
type fakeEvents struct {
	forbidden atomic.Bool
	selectors chan string
	list      []corev1.Event
	stream    *watch.Broadcaster
}

func (f *fakeEvents) List(_ context.Context, options metav1.ListOptions) (*corev1.EventList, error) {
	if f.forbidden.Load() {
		return nil, errForbidden
	}
	f.selectors <- options.FieldSelector
	return &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: f.list}, nil
}

func (f *fakeEvents) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if f.forbidden.Load() {
		return nil, errForbidden
	}
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
	}
	return f.stream.Watch()
}

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
func listening(events ...*corev1.Event) *provisioners {
	p := newProvisioners(nil, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	for _, source := range []string{clusterAutoscaler, karpenter} {
		f := &feed{p: p, source: source}
		list := make([]any, len(events))
		for i := range events {
			list[i] = events[i]
		}
		_ = f.Replace(list, "")
	}
	return p
}

// heardOf is what a cluster with one unschedulable pod "w" is told.
func heardOf(p *provisioners) (refused string, promised, seen bool) {
	cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"},
		Workers: []nodepool.Worker{{Pod: "w", UID: "w-uid", Unschedulable: "0/3 nodes are available"}, {Pod: "placed", UID: "placed-uid", Node: "n"}}}
	p.addTo(&cluster)
	return cluster.Workers[0].NodeRefused, cluster.Workers[0].NodePromised, cluster.ProvisionersSeen
}

func TestTheLatestWordOfANodeAutoscalerCounts(t *testing.T) {
	const backoff = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
	const incompatible = `Failed to schedule pod, incompatible with nodepool "gpu", no instance type met all requirements`
	triggered := said(time.Second, clusterAutoscaler, "TriggeredScaleUp", "Pod", "w", "pod triggered scale-up: [{gpu 0->1 (max: 4)}]")
	nominated := said(time.Second, karpenter, "Nominated", "Pod", "w", "Pod should schedule on: nodeclaim/gpu-x7f2k")
	other := said(time.Minute, clusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", backoff)
	other.InvolvedObject.UID = "of-an-earlier-pod"
	series := said(0, karpenter, "FailedScheduling", "Pod", "w", incompatible)
	series.Source, series.ReportingController = corev1.EventSource{}, karpenter
	series.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(noon.Add(time.Minute))}
	for name, c := range map[string]struct {
		events   []*corev1.Event
		refused  string
		promised bool
	}{
		"silence":                        {nil, "", false},
		"a node is on its way":           {[]*corev1.Event{triggered}, "", true},
		"refused":                        {[]*corev1.Event{said(0, clusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", backoff)}, backoff, false},
		"promised, then refused":         {[]*corev1.Event{triggered, said(9*time.Second, clusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", backoff)}, backoff, false},
		"refused, then promised":         {[]*corev1.Event{triggered, said(0, clusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", backoff)}, "", true},
		"nominated":                      {[]*corev1.Event{nominated}, "", true},
		"nominated, then refused":        {[]*corev1.Event{nominated, series}, incompatible, false},
		"the scheduler's own word":       {[]*corev1.Event{said(0, "default-scheduler", "FailedScheduling", "Pod", "w", "0/3 nodes are available")}, "", false},
		"another reason":                 {[]*corev1.Event{said(0, clusterAutoscaler, "ScaleDown", "Pod", "w", "deleting pod")}, "", false},
		"about an earlier pod":           {[]*corev1.Event{triggered, other}, "", true},
		"the claim named has no machine": {[]*corev1.Event{nominated, said(5*time.Second, karpenter, "InsufficientCapacityError", "NodeClaim", "gpu-x7f2k", "NodeClaim gpu-x7f2k event: out of p5.48xlarge")}, "NodeClaim gpu-x7f2k event: out of p5.48xlarge", false},
		"another claim has no machine":   {[]*corev1.Event{nominated, said(5*time.Second, karpenter, "InsufficientCapacityError", "NodeClaim", "gpu-zzzzz", "none")}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			refused, promised, seen := heardOf(listening(c.events...))
			if refused != c.refused || promised != c.promised || !seen {
				t.Errorf("refused %q, promised %v, seen %v; want %q, %v", refused, promised, seen, c.refused, c.promised)
			}
		})
	}
}

func TestEventsAreFollowedForgottenAndReadAgainOnceTheyAreAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &fakeEvents{selectors: make(chan string, 100), stream: watch.NewBroadcaster(100, watch.WaitIfChannelFull)}
		client.forbidden.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		p := newProvisioners(func(string) eventClient { return client }, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
		ended := make(chan error)
		go func() { ended <- p.Start(ctx) }()
		synctest.Wait()
		var cluster nodepool.Cluster
		p.addTo(&cluster)
		if cluster.ProvisionersSeen || len(cluster.Findings) != 1 || cluster.Findings[0].Code != EventsForbidden {
			t.Errorf("while Events are forbidden: seen %v, findings %+v", cluster.ProvisionersSeen, cluster.Findings)
		}
		client.list = []corev1.Event{*said(0, clusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", "max node group size reached")}
		client.forbidden.Store(false)
		time.Sleep(2 * forbiddenPause)
		synctest.Wait()
		refused, _, seen := heardOf(p)
		if refused != "max node group size reached" || !seen {
			t.Errorf("once they are allowed: refused %q, seen %v", refused, seen)
		}
		if err := client.stream.Action(watch.Added, said(time.Second, clusterAutoscaler, "TriggeredScaleUp", "Pod", "w", "up")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, promised, _ := heardOf(p); !promised {
			t.Error("an Event that was added is not heard")
		}
		for _, event := range []*corev1.Event{said(time.Second, clusterAutoscaler, "TriggeredScaleUp", "Pod", "w", "up"), &client.list[0]} {
			if err := client.stream.Action(watch.Deleted, event); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(p.said) != 0 {
			t.Errorf("%v is kept although all Events have expired", p.said)
		}
		got := map[string]bool{}
		for len(client.selectors) > 0 {
			got[<-client.selectors] = true
		}
		if diff := cmp.Diff(map[string]bool{"source=cluster-autoscaler": true, "source=karpenter": true}, got); diff != "" {
			t.Errorf("field selectors: %s", diff)
		}
		cancel()
		client.stream.Shutdown()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
