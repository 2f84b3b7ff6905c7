package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fieldselector "k8s.io/apimachinery/pkg/fields"

	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// eventClient reads Events.
type eventClient = reflector.Client[*corev1.EventList]

// feed is the Events of one component in one namespace. The API server selects them: a busy cluster writes thousands of
// others.
type feed struct {
	p         *autoscalerEvents
	client    eventClient
	source    string
	namespace string
	// claims: only Events about NodeClaims, which have no namespace; their Events are in "default".
	claims bool
	// own are the Events of this feed; guarded by p.mu.
	own map[string]*corev1.Event
}

// read watches the Events of its source.
func (f *feed) read(ctx context.Context) {
	source := eventsOf(f.client, f.source, f.selector())
	source.Forbidden = func(err error) { f.p.forbid(f, err) }
	source.Failed = func(err error) {
		f.p.log.Debug("reading events failed; retrying", "source", f.source, "reason", err)
	}
	source.Into(ctx, f.store())
}

// eventsOf lists and watches the Events that a field selector matches.
func eventsOf(client eventClient, name, selector string) reflector.Source {
	return reflector.Of("events of "+name, &corev1.Event{}, client, metav1.ListOptions{FieldSelector: selector})
}

func (f *feed) selector() string {
	selector := fieldselector.OneTermEqualSelector("source", f.source)
	if f.claims {
		selector = fieldselector.AndSelectors(
			selector,
			fieldselector.OneTermEqualSelector("involvedObject.kind", nodeClaim),
		)
	}
	return selector.String()
}

// forbid drops the Events of a feed: they may no longer hold.
func (p *autoscalerEvents) forbid(f *feed, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.feeds[f] != forbidden {
		p.log.Info("events are forbidden", "source", f.source, "reason", err)
	}
	f.forget()
	p.feeds[f] = forbidden
}

// store passes what a reflector reads to f.
func (f *feed) store() *reflector.Store[*corev1.Event] {
	return &reflector.Store[*corev1.Event]{Put: f.update, Remove: f.remove, ReplaceAll: f.replace}
}

// update keeps an Event that was added or that happened again.
func (f *feed) update(event *corev1.Event) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	f.keep(event)
}

// mostEvents bounds the Events of one feed, because whoever may write Events chooses their number. The API server drops
// Events after an hour. Those beyond the bound do not count: then only the time that a pod waits shows that it gets no
// node.
const mostEvents = 50_000

// keep keeps an Event. The caller holds p.mu.
func (f *feed) keep(event *corev1.Event) {
	if sourceOf(event) != f.source || f.claims && event.InvolvedObject.Kind != nodeClaim {
		return
	}
	if f.own == nil {
		f.own = map[string]*corev1.Event{}
	}
	name := nameOf(event).String()
	if _, known := f.own[name]; !known && len(f.own) >= mostEvents {
		return
	}
	f.own[name] = &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: event.Namespace, Name: event.Name},
		InvolvedObject: event.InvolvedObject,
	}
	f.p.add(event)
}

// remove forgets an Event, which the API server drops after an hour.
func (f *feed) remove(event *corev1.Event) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	delete(f.own, nameOf(event).String())
	f.p.remove(event)
}

// replace takes a whole list: the first one, or the one after a watch broke.
func (f *feed) replace(list []*corev1.Event, _ string) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	f.forget()
	for _, event := range list {
		f.keep(event)
	}
	f.p.feeds[f] = listed
}

// forget drops all Events. The caller holds p.mu.
func (f *feed) forget() {
	for _, event := range f.own {
		f.p.remove(event)
	}
	f.own = nil
}

// Used returns how much of the bound of its Events the fullest feed uses, from 0 to 1.
func (p *autoscalerEvents) Used() (most float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.feeds {
		most = max(most, float64(len(f.own))/mostEvents)
	}
	return most
}
