package provisioning

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// Config says what is read and how.
type Config struct {
	Client    dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	// Namespaces are those whose RayClusters are served; empty means all.
	Namespaces []string
	// Changed is called after something changed for a RayCluster.
	Changed func(nodepool.ClusterKey)
	Logger  *slog.Logger
}

// Watch knows the ProvisioningRequests of RayClusters.
type Watch struct {
	config Config

	mu sync.Mutex
	// Guarded by mu. all are the requests by RayCluster and name.
	all map[nodepool.ClusterKey]map[string]owner
	// unread says by namespace why its requests are unknown; empty if they are known.
	unread map[string]string
}

// NewWatch prepares the reads; Start begins them.
func NewWatch(c Config) *Watch {
	if len(c.Namespaces) == 0 {
		c.Namespaces = []string{metav1.NamespaceAll}
	}
	w := &Watch{config: c, unread: map[string]string{}, all: map[nodepool.ClusterKey]map[string]owner{}}
	for _, namespace := range c.Namespaces {
		w.unread[namespace] = "they have not been read yet"
	}
	return w
}

// Start reads until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	var reads sync.WaitGroup
	for _, namespace := range w.config.Namespaces {
		unread := func(why string) { w.setUnread(namespace, why) }
		reads.Go(func() {
			source := w.served().Source(resourceName, namespace, madeByLabel+"="+madeBy, unread)
			source.Into(ctx, &reflector.Store[*unstructured.Unstructured]{
				Put: w.put, Remove: w.remove,
				ReplaceAll: func(list []*unstructured.Unstructured, _ string) { w.replace(namespace, list) },
			})
		})
	}
	reads.Wait()
	return nil
}

// NeedLeaderElection reports false: a candidate for leadership reads as well.
func (w *Watch) NeedLeaderElection() bool { return false }

// served finds ProvisioningRequests.
func (w *Watch) served() reflector.Served {
	return reflector.Served{Client: w.config.Client, Discovery: w.config.Discovery, Group: apiGroup, Versions: versions,
		Logger: w.config.Logger}
}

func (w *Watch) setUnread(namespace, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unread[namespace] = why
	w.forget(namespace)
}

// forget drops the requests of a namespace, or of all. The caller holds mu.
func (w *Watch) forget(namespace string) {
	maps.DeleteFunc(w.all, func(key nodepool.ClusterKey, _ map[string]owner) bool {
		return namespace == metav1.NamespaceAll || key.Namespace == namespace
	})
}

func (w *Watch) put(object *unstructured.Unstructured) {
	w.mu.Lock()
	key, kept := w.keep(object)
	w.mu.Unlock()
	if kept {
		w.config.Changed(key)
	}
}

// keep keeps a request if it is Heliostat's. The caller holds mu.
func (w *Watch) keep(object *unstructured.Unstructured) (nodepool.ClusterKey, bool) {
	key, made, ours := read(object)
	if !ours {
		return key, false
	}
	if w.all[key] == nil {
		w.all[key] = map[string]owner{}
	}
	w.all[key][made.request.Name] = made
	return key, true
}

func (w *Watch) remove(object *unstructured.Unstructured) {
	key, made, ours := read(object)
	if !ours {
		return
	}
	w.mu.Lock()
	delete(w.all[key], made.request.Name)
	if len(w.all[key]) == 0 {
		delete(w.all, key)
	}
	w.mu.Unlock()
	w.config.Changed(key)
}

// replace takes a whole list: the first one, or the one after a watch broke.
func (w *Watch) replace(namespace string, list []*unstructured.Unstructured) {
	changed := map[nodepool.ClusterKey]bool{}
	w.mu.Lock()
	w.forget(namespace)
	w.unread[namespace] = ""
	for _, object := range list {
		if key, kept := w.keep(object); kept {
			changed[key] = true
		}
	}
	w.mu.Unlock()
	for key := range changed {
		w.config.Changed(key)
	}
}

// AddTo adds to a RayCluster what is known of its ProvisioningRequests.
func (w *Watch) AddTo(cluster *nodepool.Cluster) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	known := &nodepool.Provisioning{Unread: w.unreadIn(cluster.Key.Namespace)}
	for _, made := range w.all[cluster.Key] {
		if made.uid == cluster.UID {
			known.Requests = append(known.Requests, made.request)
		}
	}
	slices.SortFunc(known.Requests, func(a, b nodepool.ProvisioningRequest) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Name, b.Name))
	})
	cluster.Provisioning = known
}

// unreadIn says why the requests of a namespace are unknown. The caller holds mu.
func (w *Watch) unreadIn(namespace string) string {
	if why, one := w.unread[namespace]; one {
		return why
	}
	if why, all := w.unread[metav1.NamespaceAll]; all {
		return why
	}
	return "this process does not serve the namespace"
}
