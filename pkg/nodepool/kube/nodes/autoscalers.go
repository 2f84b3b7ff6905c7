package nodes

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// nodeClaim is Karpenter's kind for a future node.
const nodeClaim = "NodeClaim"

// reasons are the reasons of a node autoscaler's Events about a pod, or of Karpenter's about a NodeClaim; true if a
// node is being added. The Cluster Autoscaler's FailedScaleUp is not among them: it tries its other node groups next,
// and emits NotTriggerScaleUp once none is left.
type reasons map[string]bool

// claims reports whether there are reasons about NodeClaims.
func (v reasons) claims() bool {
	_, spoken := v["InsufficientCapacityError"]
	return spoken
}

var (
	clusterAutoscalerReasons = reasons{"TriggeredScaleUp": true, "NotTriggerScaleUp": false}
	karpenterReasons         = reasons{
		"Nominated":                 true,
		"FailedScheduling":          false,
		"InsufficientCapacityError": false,
		"NodeClassNotReady":         false,
	}
	goatScalerReasons = reasons{"ProvisionNode": true, "ProvisionNodeFailed": false, "NotTriggerScaleUp": false}
)

// nodeAutoscalers are the node autoscalers whose Events are read, by Event source
// (docs/reference/facts.md#events-of-node-autoscalers, docs/reference/facts.md#names-of-node-autoscalers).
var nodeAutoscalers = map[string]reasons{
	landing.FromClusterAutoscaler: clusterAutoscalerReasons,
	landing.FromKarpenter:         karpenterReasons,
	"karpenter-events":            karpenterReasons, // AKS node auto-provisioning
	"eks-auto-mode/compute":       karpenterReasons, // EKS Auto Mode
	"goatscaler":                  goatScalerReasons,
}

// autoscalerEvents holds the latest Events of node autoscalers about pods and NodeClaims.
type autoscalerEvents struct {
	client     func(namespace string) eventClient
	namespaces []string
	log        *slog.Logger

	mu sync.Mutex
	// Guarded by mu, as what the feeds keep. podEventSeen: there was an Event about some pod. Until then it is unknown
	// whether a node autoscaler runs whose Events can be read.
	feeds        []*feed
	podEventSeen bool
}

// subject is a pod or a NodeClaim; a NodeClaim has no namespace.
type subject struct{ kind, namespace, name string }

// statement is what one Event says.
type statement struct {
	at      time.Time
	uid     types.UID
	promise bool
	// karpenter: Karpenter emitted it.
	karpenter bool
	message   string
	// claim is the NodeClaim that Karpenter names.
	claim string
}

// newAutoscalerEvents prepares the reads of Events in these namespaces, all if there are none; Start begins them.
func newAutoscalerEvents(
	client func(namespace string) eventClient, namespaces []string, log *slog.Logger,
) *autoscalerEvents {
	if len(namespaces) == 0 {
		namespaces = []string{corev1.NamespaceAll}
	}
	return &autoscalerEvents{client: client, namespaces: namespaces, log: log}
}

// Start reads Events until ctx ends.
func (p *autoscalerEvents) Start(ctx context.Context) error {
	feeds := p.sources()
	p.mu.Lock()
	p.feeds = feeds
	p.mu.Unlock()
	reflector.Each(slices.Values(feeds), func(f *feed) { f.read(ctx) })
	return nil
}

// sources returns the feeds to read: each node autoscaler in each namespace and, if these do not include it, the
// namespace that contains the Events about NodeClaims.
func (p *autoscalerEvents) sources() (feeds []*feed) {
	everywhere := slices.Contains(p.namespaces, corev1.NamespaceAll) ||
		slices.Contains(p.namespaces, corev1.NamespaceDefault)
	for source, words := range nodeAutoscalers {
		for _, namespace := range p.namespaces {
			feeds = append(feeds, &feed{p: p, client: p.client(namespace), source: source, namespace: namespace})
		}
		if words.claims() && !everywhere {
			feeds = append(feeds, &feed{p: p, client: p.client(corev1.NamespaceDefault), source: source,
				namespace: corev1.NamespaceDefault, claims: true})
		}
	}
	return feeds
}

func subjectOf(event *corev1.Event) subject {
	about := subject{event.InvolvedObject.Kind, event.InvolvedObject.Namespace, event.InvolvedObject.Name}
	if about.kind == nodeClaim {
		about.namespace = ""
	}
	return about
}

func nameOf(event *corev1.Event) types.NamespacedName {
	return types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
}

// sourceOf returns the component that wrote the Event, from the old field or the new one, as the API server selects it.
func sourceOf(event *corev1.Event) string {
	if event.Source.Component != "" {
		return event.Source.Component
	}
	return event.ReportingController
}

// happenedAt returns when the Event last happened.
func happenedAt(event *corev1.Event) time.Time {
	at := event.CreationTimestamp.Time
	for _, t := range []time.Time{event.FirstTimestamp.Time, event.LastTimestamp.Time, event.EventTime.Time} {
		if t.After(at) {
			at = t
		}
	}
	if event.Series != nil && event.Series.LastObservedTime.After(at) {
		at = event.Series.LastObservedTime.Time
	}
	return at
}

// about returns what the Events say about a subject. The caller holds mu.
func (p *autoscalerEvents) about(about subject, uid types.UID) iter.Seq[statement] {
	return func(yield func(statement) bool) {
		for _, f := range p.feeds {
			for _, w := range f.statements[about] {
				earlier := uid != "" && w.uid != "" && w.uid != uid // about an earlier object of that name
				if !earlier && !yield(w) {
					return
				}
			}
		}
	}
}

// latest returns the newest statement about a subject. Of equally new ones it prefers a promise, because believing it
// wrongly costs less. The caller holds mu.
func (p *autoscalerEvents) latest(about subject, uid types.UID) (newest statement, said bool) {
	for w := range p.about(about, uid) {
		if !said || w.at.After(newest.at) || w.at.Equal(newest.at) && w.promise {
			newest, said = w, true
		}
	}
	return newest, said
}

// launchedFor reports whether Karpenter ever launched a machine for a pod. The caller holds mu.
func (p *autoscalerEvents) launchedFor(about subject, uid types.UID) bool {
	for w := range p.about(about, uid) {
		if w.claim != "" {
			return true
		}
	}
	return false
}

// known reports whether the Events about a namespace's pods have all been listed, and whether some are forbidden. The
// caller holds mu.
func (p *autoscalerEvents) known(namespace string) (all, forbidden bool) {
	feeds := 0
	all = true
	for _, f := range p.feeds {
		if f.namespace == namespace || f.namespace == corev1.NamespaceAll {
			feeds++
			all, forbidden = all && f.listed, forbidden || f.forbidden
		}
	}
	return all && feeds > 0, forbidden
}

// LaunchFailed reports whether Karpenter failed to launch the machine of a NodeClaim.
func (p *autoscalerEvents) LaunchFailed(claim string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	said, any := p.latest(subject{nodeClaim, "", claim}, "")
	return any && !said.promise
}

// AddTo adds to the workers without a node what node autoscalers say about them.
func (p *autoscalerEvents) AddTo(cluster *nodepool.Cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	listed, forbidden := p.known(cluster.Key.Namespace)
	if forbidden {
		cluster.Findings = append(cluster.Findings, unread(cluster.Key, EventsForbidden, ""))
	}
	cluster.ProvisionersSeen = listed && p.podEventSeen
	for i := range cluster.Workers {
		w := &cluster.Workers[i]
		if w.Unschedulable == "" || w.Node != "" {
			continue
		}
		pod, uid := subject{"Pod", cluster.Key.Namespace, w.Pod}, types.UID(w.UID)
		latest, said := p.latest(pod, uid)
		if !said {
			continue
		}
		launchFailed := false
		if latest.claim != "" {
			// A launch for the pod can fail after Karpenter promised it.
			if claim, failed := p.latest(subject{nodeClaim, "", latest.claim}, ""); failed {
				latest.promise, latest.message, launchFailed = false, claim.message, true
			}
		}
		w.ByKarpenter = latest.karpenter
		w.RefusedAfterLaunch = latest.karpenter && !latest.promise && !launchFailed && p.launchedFor(pod, uid)
		if w.NodePromised = latest.promise; latest.promise {
			w.PromisedAt = latest.at
		} else {
			w.NodeRefused = latest.message
		}
	}
}
