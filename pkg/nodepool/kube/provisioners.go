package kube

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// EventsForbidden says that this process may not read Events, so it does not know what node autoscalers say about pods.
const EventsForbidden = "events-forbidden"

// The node autoscalers whose Events are read, by the component that writes them.
const (
	clusterAutoscaler = "cluster-autoscaler"
	karpenter         = "karpenter"
)

// What node autoscalers say about a pod, or Karpenter about a NodeClaim; true where it says that a node is being added
// (docs/reference/facts.md#events-of-node-autoscalers).
var words = map[string]map[string]bool{
	clusterAutoscaler: {"TriggeredScaleUp": true, "NotTriggerScaleUp": false},
	karpenter:         {"Nominated": true, "FailedScheduling": false, "InsufficientCapacityError": false, "NodeClassNotReady": false},
}

// provisioners holds the latest words of node autoscalers. Like nodes it does not belong to the caches that the manager
// waits for: without the right to read Events everything else goes on, only slower.
type provisioners struct {
	client     func(namespace string) eventClient
	namespaces []string
	log        *slog.Logger

	mu sync.Mutex
	// Guarded by mu. said is by what it is said about, then by Event.
	feeds map[*feed]hearing
	said  map[spoken]map[types.NamespacedName]word
}

// hearing is how well a feed is heard.
type hearing int

const (
	unheard   hearing = iota // no list was read yet
	forbidden                // the API server does not give it
	heard
)

// spoken is a pod or a NodeClaim; a NodeClaim has no namespace.
type spoken struct{ kind, namespace, name string }

// word is one Event.
type word struct {
	at      time.Time
	uid     types.UID
	promise bool
	message string
	// claim is the NodeClaim that Karpenter named.
	claim string
}

func newProvisioners(client func(namespace string) eventClient, namespaces []string, log *slog.Logger) *provisioners {
	if len(namespaces) == 0 {
		namespaces = []string{corev1.NamespaceAll}
	}
	return &provisioners{client: client, namespaces: namespaces, log: log,
		feeds: map[*feed]hearing{}, said: map[spoken]map[types.NamespacedName]word{}}
}

// Start reads Events until ctx ends.
func (p *provisioners) Start(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, namespace := range p.namespaces {
		for _, source := range []string{clusterAutoscaler, karpenter} {
			f := &feed{p: p, client: p.client(namespace), source: source}
			p.mu.Lock()
			p.feeds[f] = unheard
			p.mu.Unlock()
			wg.Go(func() { f.read(ctx) })
		}
	}
	wg.Wait()
	return nil
}

// NeedLeaderElection says that a candidate for leadership listens too.
func (p *provisioners) NeedLeaderElection() bool { return false }

// hear keeps an Event that says something. It is called with mu held.
func (p *provisioners) hear(event *corev1.Event) {
	promise, known := words[source(event)][event.Reason]
	if !known {
		return
	}
	about := aboutOf(event)
	if p.said[about] == nil {
		p.said[about] = map[types.NamespacedName]word{}
	}
	w := word{at: saidAt(event), uid: event.InvolvedObject.UID, promise: promise, message: event.Message}
	if _, claim, ok := strings.Cut(event.Message, "nodeclaim/"); ok && promise {
		w.claim, _, _ = strings.Cut(claim, ",")
	}
	p.said[about][nameOf(event)] = w
}

// unhear drops an Event that has expired. It is called with mu held.
func (p *provisioners) unhear(event *corev1.Event) {
	about := aboutOf(event)
	delete(p.said[about], nameOf(event))
	if len(p.said[about]) == 0 {
		delete(p.said, about)
	}
}

func aboutOf(event *corev1.Event) spoken {
	about := spoken{event.InvolvedObject.Kind, event.InvolvedObject.Namespace, event.InvolvedObject.Name}
	if about.kind == "NodeClaim" {
		about.namespace = ""
	}
	return about
}

func nameOf(event *corev1.Event) types.NamespacedName {
	return types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
}

// source is the component that wrote the Event, by the old field or the new one, as the API server selects it.
func source(event *corev1.Event) string {
	if event.Source.Component != "" {
		return event.Source.Component
	}
	return event.ReportingController
}

// saidAt is when the Event last happened.
func saidAt(event *corev1.Event) time.Time {
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

// latest is the newest word about something; of equally new ones a promise, which costs less to believe wrongly.
func (p *provisioners) latest(about spoken, uid types.UID) (newest word, said bool) {
	for _, w := range p.said[about] {
		if uid != "" && w.uid != "" && w.uid != uid {
			continue // about an earlier object of that name
		}
		if !said || w.at.After(newest.at) || w.at.Equal(newest.at) && w.promise {
			newest, said = w, true
		}
	}
	return newest, said
}

// hearing is forbidden when any feed is, else that of the worst; unheard before Start. It is called with mu held.
func (p *provisioners) hearing() hearing {
	if len(p.feeds) == 0 {
		return unheard
	}
	all := slices.Collect(maps.Values(p.feeds))
	if slices.Contains(all, forbidden) {
		return forbidden
	}
	return slices.Min(all)
}

// addTo tells the workers of a cluster that was just read what node autoscalers say of those that have no node.
func (p *provisioners) addTo(cluster *nodepool.Cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	worst := p.hearing()
	if worst == forbidden {
		report := &findings{object: "RayCluster " + cluster.Key.String()}
		report.add(raydemand.Info, EventsForbidden, "", "", "this process may not list and watch Events, so it learns that a group's nodes are out of stock only by the allocation timeout",
			"grant it list and watch on events, if that is wanted")
		cluster.Findings = append(cluster.Findings, report.list...)
		return
	}
	cluster.ProvisionersSeen = worst == heard
	for i := range cluster.Workers {
		w := &cluster.Workers[i]
		if w.Unschedulable == "" || w.Node != "" {
			continue
		}
		latest, said := p.latest(spoken{"Pod", cluster.Key.Namespace, w.Pod}, types.UID(w.UID))
		if !said {
			continue
		}
		if latest.claim != "" {
			// What Karpenter launches for the pod may fail after it was promised.
			if claim, failed := p.latest(spoken{"NodeClaim", "", latest.claim}, ""); failed {
				latest.promise, latest.message = false, claim.message
			}
		}
		if w.NodePromised = latest.promise; !latest.promise {
			w.NodeRefused = latest.message
		}
	}
}
