package kueue

import (
	"context"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// group is Kueue's API group, and versions are those of its versions that can be read, the best first.
const group = "kueue.x-k8s.io"

var versions = []string{"v1beta2", "v1beta1"}

// Watch knows the Workloads of RayClusters, and the ClusterQueues.
type Watch struct {
	config attached.Config
	now    func() time.Time

	mu sync.Mutex
	// Guarded by mu. all are the RayClusters with Workloads, queues the ClusterQueues by name.
	all    map[nodepool.ClusterKey]*queuedCluster
	queues map[string]*clusterQueue
	// unread says by namespace why its Workloads are unknown; empty if they are known.
	unread map[string]string
}

// queuedCluster is a RayCluster with Workloads: its Workloads by name, and what others have of the ClusterQueue that
// admitted it last.
type queuedCluster struct {
	workloads map[string]*workload
	queue     string
	others    othersUse
}

// othersIn returns what others have of a ClusterQueue; nothing is known of another one than the last.
func (q *queuedCluster) othersIn(queue string) othersUse {
	if q.others == nil || q.queue != queue {
		q.queue, q.others = queue, othersUse{}
	}
	return q.others
}

// NewWatch prepares the reads; Start begins them.
func NewWatch(c attached.Config) *Watch {
	if len(c.Namespaces) == 0 {
		c.Namespaces = []string{metav1.NamespaceAll}
	}
	w := &Watch{
		config: c, now: time.Now, unread: map[string]string{},
		all: map[nodepool.ClusterKey]*queuedCluster{}, queues: map[string]*clusterQueue{},
	}
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
			source := w.config.Served(group, versions...).Source("workloads", namespace, "", unread)
			source.Into(ctx, &reflector.Store[*unstructured.Unstructured]{
				Put: w.putWorkload, Remove: w.removeWorkload,
				ReplaceAll: func(list []*unstructured.Unstructured, _ string) { w.replaceWorkloads(namespace, list) },
			})
		})
	}
	reads.Go(func() {
		unread := func(string) { w.replaceQueues(nil, "") }
		w.config.Served(group, versions...).Source("clusterqueues", metav1.NamespaceAll, "", unread).
			Into(ctx, &reflector.Store[*unstructured.Unstructured]{
				Put: w.putQueue, Remove: w.removeQueue, ReplaceAll: w.replaceQueues,
			})
	})
	reads.Wait()
	return nil
}

// NeedLeaderElection reports false: a candidate for leadership reads as well.
func (w *Watch) NeedLeaderElection() bool { return false }

// setUnread forgets the Workloads of a namespace.
func (w *Watch) setUnread(namespace, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unread[namespace] = why
	w.forgetNamespace(namespace)
}

// forgetNamespace drops the Workloads of a namespace, or of all. The caller holds mu.
func (w *Watch) forgetNamespace(namespace string) {
	maps.DeleteFunc(w.all, func(key nodepool.ClusterKey, _ *queuedCluster) bool {
		return namespace == metav1.NamespaceAll || key.Namespace == namespace
	})
}

func (w *Watch) putWorkload(object *unstructured.Unstructured) {
	w.mu.Lock()
	key, changed := w.keep(object)
	w.mu.Unlock()
	if changed {
		w.config.Changed(key)
	}
}

// keep keeps a Workload if it is a RayCluster's. The caller holds mu.
func (w *Watch) keep(object *unstructured.Unstructured) (key nodepool.ClusterKey, changed bool) {
	read, err := readWorkload(object)
	if err != nil {
		w.config.Logger.Debug("ignoring a Workload that cannot be read", "reason", err)
	}
	if read == nil {
		return key, false
	}
	if w.all[read.of] == nil {
		w.all[read.of] = &queuedCluster{workloads: map[string]*workload{}}
	}
	w.all[read.of].workloads[read.name] = read
	return read.of, true
}

func (w *Watch) removeWorkload(object *unstructured.Unstructured) {
	read, err := readWorkload(object)
	if err != nil || read == nil {
		return
	}
	w.mu.Lock()
	if of := w.all[read.of]; of != nil {
		if delete(of.workloads, read.name); len(of.workloads) == 0 {
			delete(w.all, read.of)
		}
	}
	w.mu.Unlock()
	w.config.Changed(read.of)
}

// replaceWorkloads takes a whole list: the first one, or the one after a watch broke.
func (w *Watch) replaceWorkloads(namespace string, list []*unstructured.Unstructured) {
	changed := map[nodepool.ClusterKey]bool{}
	w.mu.Lock()
	w.forgetNamespace(namespace)
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

func (w *Watch) putQueue(object *unstructured.Unstructured) {
	queue, err := readClusterQueue(object)
	if err != nil {
		w.config.Logger.Debug("ignoring a ClusterQueue that cannot be read", "reason", err)
		return
	}
	w.mu.Lock()
	before := w.queues[queue.name]
	w.queues[queue.name] = queue
	var users []nodepool.ClusterKey
	if before == nil || !before.equal(queue) {
		users = w.usersOf(queue.name)
	}
	w.mu.Unlock()
	for _, key := range users {
		w.config.Changed(key)
	}
}

// usersOf returns the RayClusters that a ClusterQueue has admitted. The caller holds mu.
func (w *Watch) usersOf(queue string) []nodepool.ClusterKey {
	var users []nodepool.ClusterKey
	for key := range w.all {
		if admitted := w.of(key, "").admitted(); admitted != nil && admitted.queue == queue {
			users = append(users, key)
		}
	}
	return users
}

func (w *Watch) removeQueue(object *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.queues, object.GetName())
}

func (w *Watch) replaceQueues(list []*unstructured.Unstructured, _ string) {
	w.mu.Lock()
	clear(w.queues)
	w.mu.Unlock()
	for _, object := range list {
		w.putQueue(object)
	}
}

// of returns the Workloads of a RayCluster: of any with that name, or of the one with a UID. The caller holds mu.
func (w *Watch) of(key nodepool.ClusterKey, uid string) workloads {
	var own workloads
	if w.all[key] == nil {
		return nil
	}
	for _, each := range w.all[key].workloads {
		if uid == "" || string(each.cluster) == uid {
			own = append(own, each)
		}
	}
	return own
}

// AddTo adds to a queued RayCluster what Kueue says of its quota.
func (w *Watch) AddTo(cluster *nodepool.Cluster) {
	if w == nil || !cluster.Queue.Queued() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if why := w.unreadIn(cluster.Key.Namespace); why != "" {
		cluster.Queue.Quota = &nodepool.Quota{Unread: why}
		return
	}
	own := w.of(cluster.Key, cluster.UID)
	var queue *clusterQueue
	var others othersUse
	if admitted := own.admitted(); admitted != nil {
		queue, others = w.queues[admitted.queue], w.all[cluster.Key].othersIn(admitted.queue)
	}
	cluster.Queue.Quota = own.quota(cluster, queue, others, w.now())
	if found := own.neverStarts(cluster); found != nil {
		cluster.Findings = append(cluster.Findings, *found)
	}
}

// unreadIn says why the Workloads of a namespace are unknown. The caller holds mu.
func (w *Watch) unreadIn(namespace string) string {
	if why, one := w.unread[namespace]; one {
		return why
	}
	if why, all := w.unread[metav1.NamespaceAll]; all {
		return why
	}
	return "this process does not serve the namespace"
}
