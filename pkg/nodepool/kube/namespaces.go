package kube

import (
	"context"
	"log/slog"
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

	mu        sync.Mutex
	isolation map[string]string // guarded by mu; those with the annotation alone
}

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
		forbidden: func(err error) {
			n.log.Info("namespaces are not read, so they have no default of isolation", "reason", err)
		},
		failed: func(err error) { n.log.Debug("namespaces are read again", "reason", err) },
	}.into(ctx, n)
	return nil
}

// NeedLeaderElection says that a candidate for leadership knows the defaults too.
func (n *namespaces) NeedLeaderElection() bool { return false }

// addTo gives a cluster without an isolation of its own the default of its namespace. One that cannot be read requires hardware.
func (n *namespaces) addTo(cluster *nodepool.Cluster) {
	n.mu.Lock()
	said := n.isolation[cluster.Key.Namespace]
	n.mu.Unlock()
	if cluster.Isolation != "" || said == "" {
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
