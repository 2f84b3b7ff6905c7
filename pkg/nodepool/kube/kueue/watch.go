package kueue

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// group is Kueue's API group, and versions are those of its versions that can be read, the best first.
const group = "kueue.x-k8s.io"

var versions = []string{"v1beta2", "v1beta1"}

// Watch knows the Workloads of jobs, and the ClusterQueues.
type Watch struct {
	config attached.Config
	now    func() time.Time

	mu sync.Mutex
	// Guarded by mu. all are the jobs with Workloads.
	all     map[job]*queuedJob
	queues  byName[clusterQueue]
	cohorts byName[cohort]
	// unread says by namespace why its Workloads are unknown; empty if they are known.
	unread map[string]string
}

// queuedJob is a job with Workloads: its Workloads by name, the RayCluster whose replicas Kueue follows, and what
// others have of the ClusterQueue that admitted it last.
type queuedJob struct {
	workloads map[string]*workload
	cluster   nodepool.ClusterKey
	queue     string
	others    othersUse
}

// othersIn returns what others have of a ClusterQueue; nothing is known of another one than the last.
func (q *queuedJob) othersIn(queue string) othersUse {
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
		all: map[job]*queuedJob{},
	}
	w.queues = byName[clusterQueue]{
		watch: w, kind: "ClusterQueue", read: readClusterQueue, users: w.usersOf, kept: map[string]*clusterQueue{},
	}
	w.cohorts = byName[cohort]{
		watch: w, kind: "Cohort", read: readCohort, kept: map[string]*cohort{},
		unread: "Cohorts have not been read yet",
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
	reads.Go(func() { w.queues.follow(ctx, "clusterqueues") })
	reads.Go(func() { w.cohorts.follow(ctx, "cohorts") })
	reads.Wait()
	return nil
}

// setUnread forgets the Workloads of a namespace.
func (w *Watch) setUnread(namespace, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unread[namespace] = why
	w.forgetNamespace(namespace)
}

// forgetNamespace drops the Workloads of a namespace, or of all. The caller holds mu.
func (w *Watch) forgetNamespace(namespace string) {
	maps.DeleteFunc(w.all, func(of job, _ *queuedJob) bool {
		return namespace == metav1.NamespaceAll || of.namespace == namespace
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

// keep keeps a Workload if it is a job's, and returns the RayCluster, which is not known before it was asked for once.
// The caller holds mu.
func (w *Watch) keep(object *unstructured.Unstructured) (key nodepool.ClusterKey, changed bool) {
	read, err := readWorkload(object)
	if err != nil {
		w.config.Logger.Debug("ignoring a Workload that cannot be read", "reason", err)
	}
	if read == nil {
		return key, false
	}
	if w.all[read.of] == nil {
		w.all[read.of] = &queuedJob{workloads: map[string]*workload{}, cluster: read.of.ownCluster()}
	}
	of := w.all[read.of]
	of.workloads[read.name] = read
	return of.cluster, of.cluster != nodepool.ClusterKey{}
}

func (w *Watch) removeWorkload(object *unstructured.Unstructured) {
	read, err := readWorkload(object)
	if err != nil || read == nil {
		return
	}
	var changed nodepool.ClusterKey
	w.mu.Lock()
	if of := w.all[read.of]; of != nil {
		changed = of.cluster
		if delete(of.workloads, read.name); len(of.workloads) == 0 {
			delete(w.all, read.of)
		}
	}
	w.mu.Unlock()
	if changed != (nodepool.ClusterKey{}) {
		w.config.Changed(changed)
	}
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

// byName keeps what is read of the objects of a kind without namespaces. The mutex of the Watch guards it.
type byName[T any] struct {
	watch *Watch
	kind  string
	read  func(*unstructured.Unstructured) (*T, error)
	// users returns the RayClusters that an object concerns that was other before; nil if they need not be told.
	users func(before, now *T) []nodepool.ClusterKey
	kept  map[string]*T
	// unread says why the objects are unknown, empty if they are known.
	unread string
}

// follow reads the objects until ctx ends.
func (n *byName[T]) follow(ctx context.Context, resource string) {
	unread := func(why string) { n.replace(nil, why) }
	n.watch.config.Served(group, versions...).Source(resource, metav1.NamespaceAll, "", unread).
		Into(ctx, &reflector.Store[*unstructured.Unstructured]{
			Put: n.put, Remove: n.remove,
			ReplaceAll: func(list []*unstructured.Unstructured, _ string) { n.replace(list, "") },
		})
}

func (n *byName[T]) put(object *unstructured.Unstructured) {
	now, err := n.read(object)
	if err != nil {
		n.watch.config.Logger.Debug("ignoring a "+n.kind+" that cannot be read", "reason", err)
		return
	}
	var users []nodepool.ClusterKey
	n.watch.mu.Lock()
	before := n.kept[object.GetName()]
	n.kept[object.GetName()] = now
	if n.users != nil {
		users = n.users(before, now)
	}
	n.watch.mu.Unlock()
	for _, key := range users {
		n.watch.config.Changed(key)
	}
}

func (n *byName[T]) remove(object *unstructured.Unstructured) {
	n.watch.mu.Lock()
	defer n.watch.mu.Unlock()
	delete(n.kept, object.GetName())
}

// replace takes a whole list, or forgets all because they cannot be read.
func (n *byName[T]) replace(list []*unstructured.Unstructured, unread string) {
	n.watch.mu.Lock()
	clear(n.kept)
	n.unread = unread
	n.watch.mu.Unlock()
	for _, object := range list {
		n.put(object)
	}
}

// mostOf returns how much of a resource a ClusterQueue may use in all, or why that is unknown. The caller holds mu.
func (w *Watch) mostOf(queue *clusterQueue, of flavored) (raydemand.Amount, string) {
	if queue.cohort != "" && w.cohorts.unread != "" {
		return 0, fmt.Sprintf("ClusterQueue %s is in cohort %s: %s", queue.name, queue.cohort, w.cohorts.unread)
	}
	tree := quotaTree{of: of, queues: w.queues.kept, cohorts: w.cohorts.kept}
	most := tree.most(queue)
	if queue.reclaims && most < queue.quotas[of].nominal {
		return 0, fmt.Sprintf("others in cohort %s have borrowed %s of ClusterQueue %s, and Kueue may evict them",
			queue.cohort, of.resource, queue.name)
	}
	return most, ""
}

// usersOf returns the RayClusters that a ClusterQueue has admitted, or one in its cohort, if its state is another one
// than before. The caller holds mu.
func (w *Watch) usersOf(before, now *clusterQueue) []nodepool.ClusterKey {
	if before != nil && before.equal(now) {
		return nil
	}
	var users []nodepool.ClusterKey
	for of, each := range w.all {
		known := each.cluster != nodepool.ClusterKey{}
		admitted := w.of(of, "").admitted()
		if known && admitted != nil && (admitted.queue == now.name || w.sameCohort(admitted.queue, now.name)) {
			users = append(users, each.cluster)
		}
	}
	return users
}

// sameCohort reports whether two ClusterQueues are in one cohort. The caller holds mu.
func (w *Watch) sameCohort(a, b string) bool {
	one, other := w.queues.kept[a], w.queues.kept[b]
	return one != nil && other != nil && one.cohort != "" && one.cohort == other.cohort
}

// of returns the Workloads of a job: of any with that name, or of the one with a UID. The caller holds mu.
func (w *Watch) of(key job, uid string) workloads {
	var own workloads
	if w.all[key] == nil {
		return nil
	}
	for _, each := range w.all[key].workloads {
		if uid == "" || string(each.jobUID) == uid {
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
	of, uid := jobOf(cluster)
	own := w.of(of, uid)
	if len(own) > 0 && (cluster.Queue.Parent.Kind == "" || cluster.Queue.Followed) {
		w.all[of].cluster = cluster.Key // of a RayService with two RayClusters, the one that Kueue follows
	}
	var queue *clusterQueue
	var others othersUse
	if admitted := own.admitted(); admitted != nil {
		queue, others = w.queues.kept[admitted.queue], w.all[of].othersIn(admitted.queue)
	}
	most := func(of flavored) (raydemand.Amount, string) { return w.mostOf(queue, of) }
	cluster.Queue.Quota = own.quota(cluster, queue, most, others, w.now())
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
