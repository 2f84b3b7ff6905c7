package nodes

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

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
		return nil, errNoStreams
	}
	return f.stream.Watch()
}

// selected returns the field selectors of all lists so far.
func (f *fakeEvents) selected() map[string]bool {
	all := map[string]bool{}
	for len(f.selectors) > 0 {
		all[<-f.selectors] = true
	}
	return all
}

// TestEventsAreBounded: those beyond the bound do not count, and there is room again when others expire.
func TestEventsAreBounded(t *testing.T) {
	p := listening()
	f := &feed{p: p, source: landing.FromClusterAutoscaler}
	f.listed, p.feeds = true, append(p.feeds, f)
	for i := range mostEvents {
		f.update(said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", fmt.Sprint("other-", i), "no"))
	}
	late := said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", "max node group size reached")
	f.update(late)
	if refused, _, _ := heardOf(p); refused != "" {
		t.Errorf("refused %q beyond the bound", refused)
	}
	f.remove(said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "other-0", "no"))
	f.update(late)
	if refused, _, _ := heardOf(p); refused == "" {
		t.Error("an Event does not count although there is room again")
	}
}
