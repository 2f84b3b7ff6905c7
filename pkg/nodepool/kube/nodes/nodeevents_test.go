package nodes

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// fakeEvents is an API server's Events: a list, and a stream of what changes. Unlike a real one it hands every feed all
// of them, whatever the field selector.
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

// awsEvent is an Event of the AWS node termination handler about node a.
func awsEvent(name, reason, message string, at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "2"},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "a"},
		Source:         corev1.EventSource{Component: "aws-node-termination-handler", Host: "a"},
		Reason:         reason, Message: message, LastTimestamp: metav1.NewTime(at),
	}
}

// besideNodeEvents runs a test beside watches of node a and of Events about it.
func besideNodeEvents(t *testing.T, do func(*testing.T, *fakeNodes, *fakeEvents, func(time.Duration) *departure.Notice)) {
	client := &fakeNodes{list: []corev1.Node{*kubeNode("a", "1", corev1.ConditionTrue)}}
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		said := &fakeEvents{selectors: make(chan string, 8), stream: watch.NewBroadcaster(8, watch.WaitIfChannelFull)}
		o := &Watch{nodes: n, claims: newClaimWatch(nil, nil, slog.New(slog.DiscardHandler)),
			nodeEvents: newNodeEvents(said, slog.New(slog.DiscardHandler))}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = o.nodeEvents.Start(ctx) }()
		defer func() { stop(); said.stream.Shutdown(); <-done }()
		synctest.Wait()
		begun := time.Now()
		do(t, client, said, func(scheduled time.Duration) *departure.Notice {
			synctest.Wait()
			cluster := nodepool.Cluster{Key: llm, UID: "u",
				Workers: []nodepool.Worker{{Pod: "w", Node: "a", Running: true, ScheduledAt: begun.Add(scheduled)}}}
			n.addTo(&cluster)
			o.markGoing(&cluster)
			return cluster.Workers[0].Going
		})
	})
}

func cordonedNode() *corev1.Node {
	node := kubeNode("a", "1", corev1.ConditionTrue)
	node.Spec.Unschedulable = true
	return node
}

func TestAnEventAboutACordonedNodeIsItsSign(t *testing.T) {
	besideNodeEvents(t, func(t *testing.T, nodes *fakeNodes, events *fakeEvents, going func(time.Duration) *departure.Notice) {
		if got := <-events.selectors; got != "source=aws-node-termination-handler,involvedObject.kind=Node" &&
			got != "involvedObject.kind=Node,source=aws-node-termination-handler" {
			t.Errorf("Events are selected by %q, want those of the handler about nodes", got)
		}
		deadline := time.Now().Add(2 * time.Minute).UTC().Truncate(time.Second)
		events.stream.Action(watch.Added, awsEvent("e1", "SpotInterruption",
			"Spot ITN received. Instance will be interrupted at "+deadline.Format(time.RFC3339)+" \n", time.Now()))
		if got := going(-time.Minute); got == nil || got.Sign != departure.AWSSpot || got.Certain {
			t.Errorf("an Event that the node does not confirm: %+v, want a warning: more people may write Events", got)
		}
		nodes.stream.Modify(cordonedNode())
		if got := going(-time.Minute); got == nil || !got.Certain || !got.Reclaimed || !got.Deadline.Equal(deadline) {
			t.Errorf("an Event about a cordoned node: %+v, want it certain, until %v", got, deadline)
		}
		if got := going(20 * time.Second); got == nil || got.Certain {
			t.Errorf("a worker that came after the Event: %+v, want a warning", got)
		}
		time.Sleep(time.Minute)
		events.stream.Action(watch.Added, awsEvent("e2", "Uncordon", "Node successfully uncordoned", time.Now()))
		if got := going(-time.Minute); got == nil || got.Sign != departure.Cordoned {
			t.Errorf("after the handler took it back: %+v, want only the cordon that is still there", got)
		}
		time.Sleep(time.Minute)
		events.stream.Action(watch.Added, awsEvent("e3", "StateChange", "EC2 State Change event received.", time.Now()))
		if got := going(-time.Minute); got == nil || got.Sign != departure.AWSStateChange || !got.Certain {
			t.Errorf("a later Event: %+v", got)
		}
		for _, name := range []string{"e1", "e2", "e3"} {
			events.stream.Action(watch.Deleted, awsEvent(name, "StateChange", "", time.Now()))
		}
		if got := going(-time.Minute); got == nil || got.Sign != departure.Cordoned {
			t.Errorf("after the Events expired: %+v, want only the cordon", got)
		}
	})
}

func TestAnEventAboutAnEarlierMachineOfTheNameIsNoSign(t *testing.T) {
	besideNodeEvents(t, func(t *testing.T, nodes *fakeNodes, events *fakeEvents, going func(time.Duration) *departure.Notice) {
		events.stream.Action(watch.Added, awsEvent("e1", "SpotInterruption", "", time.Now()))
		time.Sleep(10 * time.Second)
		again := cordonedNode()
		again.CreationTimestamp = metav1.Now()
		nodes.stream.Modify(again)
		if got := going(-time.Minute); got == nil || got.Sign != departure.Cordoned {
			t.Errorf("a node that registered after the Event: %+v, want only its cordon", got)
		}
	})
}

func TestOtherEventsAreNoSigns(t *testing.T) {
	besideNodeEvents(t, func(t *testing.T, _ *fakeNodes, events *fakeEvents, going func(time.Duration) *departure.Notice) {
		foreign := awsEvent("e1", "SpotInterruption", "", time.Now())
		foreign.Source.Component = "somebody"
		pod := awsEvent("e2", "SpotInterruption", "", time.Now())
		pod.InvolvedObject.Kind = "Pod"
		for _, event := range []*corev1.Event{foreign, pod, awsEvent("e3", "CordonAndDrain", "", time.Now())} {
			events.stream.Action(watch.Added, event)
		}
		if got := going(-time.Minute); got != nil {
			t.Errorf("a sign without a reason: %+v", got)
		}
	})
}

// TestEventsAreBounded: those beyond the bound do not count, and there is room again when others expire.
func TestEventsAreBounded(t *testing.T) {
	p := listening()
	f := &feed{p: p, source: landing.FromClusterAutoscaler}
	p.feeds[f] = listed
	for i := range mostEvents {
		f.update(said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", fmt.Sprint("other-", i), "no"))
	}
	late := said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", "max node group size reached")
	f.update(late)
	if refused, _, _ := heardOf(p); refused != "" || p.Used() != 1 {
		t.Errorf("refused %q with %v of the bound in use", refused, p.Used())
	}
	f.remove(said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "other-0", "no"))
	f.update(late)
	if refused, _, _ := heardOf(p); refused == "" {
		t.Error("an Event does not count although there is room again")
	}
}
