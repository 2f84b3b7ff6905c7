package kube

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// namespaceClient is what is needed to follow namespaces.
type namespaceClient interface {
	List(ctx context.Context, options metav1.ListOptions) (*corev1.NamespaceList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// namespaces holds what namespaces say about isolation. Like nodes it does not belong to the caches that the manager waits for: without the
// right to read namespaces there are no such defaults, and a RayCluster's own annotation still holds.
type namespaces struct {
	client namespaceClient
	log    *slog.Logger
	// changed is called after a default is another one.
	changed func()

	mu sync.Mutex
	// Guarded by mu. isolation has those with the annotation alone. What was read holds on when the right to read is lost.
	isolation map[string]string
	forbidden bool
}

// NamespacesForbidden says that this process may not read namespaces, so it does not know what isolation they require by default.
const NamespacesForbidden = "namespaces-forbidden"

func newNamespaces(client namespaceClient, log *slog.Logger, changed func()) *namespaces {
	return &namespaces{client: client, log: log, changed: changed, isolation: map[string]string{}}
}

// Start reads namespaces until ctx ends.
func (n *namespaces) Start(ctx context.Context) error {
	followed{
		name: "namespaces", kind: &corev1.Namespace{}, watch: n.client.Watch,
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return n.client.List(ctx, options)
		},
		forbidden: n.forbid,
		failed:    func(err error) { n.log.Debug("namespaces are read again", "reason", err) },
	}.into(ctx, n)
	return nil
}

// NeedLeaderElection says that a candidate for leadership knows the defaults too.
func (n *namespaces) NeedLeaderElection() bool { return false }

func (n *namespaces) forbid(err error) {
	n.mu.Lock()
	before := n.forbidden
	n.forbidden = true
	n.mu.Unlock()
	if !before {
		n.log.Info("namespaces are not read, so they have no default of isolation", "reason", err)
		n.changed()
	}
}

// addTo gives a cluster without an isolation of its own the default of its namespace. One that cannot be read requires hardware. Where
// namespaces may not be read that is told to clusters with GPUs, which nothing but the default would guard.
func (n *namespaces) addTo(cluster *nodepool.Cluster) {
	n.mu.Lock()
	said, forbidden := n.isolation[cluster.Key.Namespace], n.forbidden
	n.mu.Unlock()
	if cluster.Isolation != "" {
		return
	}
	if said == "" {
		if forbidden && slices.ContainsFunc(cluster.Groups, func(g nodepool.WorkerGroup) bool { return len(g.Slices) > 0 }) {
			cluster.Findings = append(cluster.Findings, raydemand.Finding{
				Code: NamespacesForbidden, Severity: raydemand.Warning, Object: "RayCluster " + cluster.Key.String(),
				Why: "this process may not list and watch namespaces, so an isolation of GPUs that the namespace requires by default is not kept",
				Fix: "grant it list and watch on namespaces by a ClusterRole, or annotate the RayCluster with " + nodepool.IsolationAnnotation,
			})
		}
		return
	}
	required, err := nodepool.IsolationOf("", said)
	cluster.Isolation = required
	if err != nil {
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code: AnnotationUnreadable, Severity: raydemand.Error, Object: "Namespace " + cluster.Key.Namespace,
			Field: "metadata.annotations." + nodepool.IsolationAnnotation, Seen: short(said),
			Why: "it is no isolation, so GPUs are used only where hardware keeps them apart", Fix: "write hardware, limit or any",
		})
	}
}

// The methods below make it the store of a reflector.

// Transformer keeps a namespace as it is; it is small.
func (n *namespaces) Transformer() toolscache.TransformFunc { return nil }

// Add keeps a namespace that was added.
func (n *namespaces) Add(object any) error { return n.Update(object) }

// Update keeps what a namespace says now.
func (n *namespaces) Update(object any) error {
	if namespace, ok := object.(*corev1.Namespace); ok {
		n.set(namespace.Name, namespace.Annotations[nodepool.IsolationAnnotation])
	}
	return nil
}

// Delete forgets a namespace.
func (n *namespaces) Delete(object any) error {
	if namespace, ok := underTombstone(object).(*corev1.Namespace); ok {
		n.set(namespace.Name, "")
	}
	return nil
}

// Replace takes a whole list, the first one or the one after a broken watch.
func (n *namespaces) Replace(list []any, _ string) error {
	said := map[string]string{}
	for _, object := range list {
		if namespace, ok := object.(*corev1.Namespace); ok {
			said[namespace.Name] = namespace.Annotations[nodepool.IsolationAnnotation]
		}
	}
	n.mu.Lock()
	readAgain := n.forbidden
	n.forbidden = false
	known := make([]string, 0, len(n.isolation))
	for name := range n.isolation {
		known = append(known, name)
	}
	n.mu.Unlock()
	for _, name := range known {
		if _, there := said[name]; !there {
			n.set(name, "")
		}
	}
	for name, isolation := range said {
		n.set(name, isolation)
	}
	if readAgain {
		n.changed()
	}
	return nil
}

// Resync has nothing to do: what is kept is always whole.
func (n *namespaces) Resync() error { return nil }

func (n *namespaces) set(namespace, said string) {
	n.mu.Lock()
	before := n.isolation[namespace]
	if said == "" {
		delete(n.isolation, namespace)
	} else {
		n.isolation[namespace] = said
	}
	n.mu.Unlock()
	if before != said {
		n.changed()
	}
}
