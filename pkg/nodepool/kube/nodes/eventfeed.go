package nodes

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

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
	// Guarded by p.mu. The API server has listed the Events, or forbids it. statements are by subject, then by Event;
	// kept counts them.
	listed, forbidden bool

	statements map[subject]map[types.NamespacedName]statement
	kept       int
}

// read watches the Events of its source.
func (f *feed) read(ctx context.Context) {
	source := reflector.Of("events of "+f.source, &corev1.Event{}, f.client,
		metav1.ListOptions{FieldSelector: f.selector()}, f.p.log)
	source.Forbidden = func(err error) { f.p.forbid(f, err) }
	source.Into(ctx, f.store())
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
	if !f.forbidden {
		p.log.Info("events are forbidden", "source", f.source, "reason", err)
	}
	f.listed, f.forbidden, f.statements, f.kept = false, true, nil, 0
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

// keep keeps an Event with a known reason. The caller holds p.mu.
func (f *feed) keep(event *corev1.Event) {
	words := nodeAutoscalers[f.source]
	promise, known := words[event.Reason]
	about, name := subjectOf(event), nameOf(event)
	if sourceOf(event) != f.source || f.claims && about.kind != nodeClaim || !known {
		return
	}
	if _, again := f.statements[about][name]; !again {
		if f.kept >= mostEvents {
			return
		}
		f.kept++
	}
	w := statement{at: happenedAt(event), uid: event.InvolvedObject.UID, promise: promise,
		karpenter: words.claims(), message: event.Message}
	if _, claim, ok := strings.Cut(event.Message, "nodeclaim/"); ok && promise {
		w.claim, _, _ = strings.Cut(claim, ",")
	}
	f.p.podEventSeen = f.p.podEventSeen || about.kind == "Pod"
	if f.statements == nil {
		f.statements = map[subject]map[types.NamespacedName]statement{}
	}
	if f.statements[about] == nil {
		f.statements[about] = map[types.NamespacedName]statement{}
	}
	f.statements[about][name] = w
}

// remove forgets an Event, which the API server drops after an hour.
func (f *feed) remove(event *corev1.Event) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	about, name := subjectOf(event), nameOf(event)
	if _, known := f.statements[about][name]; !known {
		return
	}
	f.kept--
	if delete(f.statements[about], name); len(f.statements[about]) == 0 {
		delete(f.statements, about)
	}
}

// replace takes a whole list: the first one, or the one after a watch broke.
func (f *feed) replace(list []*corev1.Event, _ string) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	f.listed, f.forbidden, f.statements, f.kept = true, false, nil, 0
	for _, event := range list {
		f.keep(event)
	}
}
