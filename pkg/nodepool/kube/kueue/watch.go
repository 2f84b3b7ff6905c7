package kueue

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Kueue's API group, and the version of it that is read.
const (
	group   = "kueue.x-k8s.io"
	version = "v1beta2"
)

// Watch knows the Workloads of jobs, and the ClusterQueues.
type Watch struct {
	config attached.Config
	now    func() time.Time
	// workloads are the Workloads by their job, as jobKey names it.
	workloads *attached.Objects[*unstructured.Unstructured, *workload]

	mu sync.Mutex
	// Guarded by mu. jobs are those whose RayClusters have been looked at while there were Workloads.
	jobs    map[nodepool.ClusterKey]*queuedJob
	queues  byName
	cohorts byName
}

// queuedJob is a job with Workloads: the RayCluster whose replicas Kueue follows, and what others have of the
// ClusterQueue that admitted it last.
type queuedJob struct {
	cluster nodepool.ClusterKey
	queue   string
	others  othersUse
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
	w := &Watch{config: c, now: time.Now, jobs: map[nodepool.ClusterKey]*queuedJob{}}
	ofJobs := c
	ofJobs.Changed = w.jobChanged
	w.workloads = attached.New(ofJobs, attached.Kind[*unstructured.Unstructured, *workload]{
		Served: c.Served(group, version), Resource: "workloads", Read: w.read,
	})
	w.queues = byName{watch: w, kept: map[string]*quotaHolder{}}
	w.cohorts = byName{watch: w, kept: map[string]*quotaHolder{}, unread: "Cohorts have not been read yet"}
	return w
}

// Start reads until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	var reads sync.WaitGroup
	reads.Go(func() { w.queues.follow(ctx, "clusterqueues") })
	reads.Go(func() { w.cohorts.follow(ctx, "cohorts") })
	err := w.workloads.Start(ctx)
	reads.Wait()
	return err
}

func (w *Watch) read(object *unstructured.Unstructured) (attached.Object[*workload], bool) {
	read, err := readWorkload(object)
	if err != nil {
		w.config.Logger.Debug("ignoring a Workload that cannot be read", "reason", err)
	}
	if read == nil {
		return attached.Object[*workload]{}, false
	}
	return attached.Object[*workload]{Cluster: read.of, UID: read.jobUID, Value: read}, true
}

// jobChanged passes on that the Workloads of a job have changed. The RayCluster of a parent is not known before it was
// looked at once.
func (w *Watch) jobChanged(of nodepool.ClusterKey) {
	w.mu.Lock()
	known := w.jobs[of]
	w.mu.Unlock()
	switch name, own := strings.CutPrefix(of.Name, "RayCluster/"); {
	case own:
		w.config.Changed(nodepool.ClusterKey{Namespace: of.Namespace, Name: name})
	case known != nil && known.cluster != (nodepool.ClusterKey{}):
		w.config.Changed(known.cluster)
	}
}

// Forget drops what is kept about a RayCluster that is gone.
func (w *Watch) Forget(key nodepool.ClusterKey) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.jobs, func(_ nodepool.ClusterKey, of *queuedJob) bool { return of.cluster == key })
}

// byName keeps what is read of ClusterQueues, or of Cohorts. The mutex of the Watch guards it.
type byName struct {
	watch *Watch
	kept  map[string]*quotaHolder
	// unread says why the objects are unknown, empty if they are known.
	unread string
}

// follow reads the objects until ctx ends.
func (n *byName) follow(ctx context.Context, resource string) {
	unread := func(why string) { n.replace(nil, why) }
	n.watch.config.Served(group, version).Source(resource, metav1.NamespaceAll, "", unread).
		Into(ctx, &reflector.Store[*unstructured.Unstructured]{
			Put: n.put, Remove: n.remove,
			ReplaceAll: func(list []*unstructured.Unstructured, _ string) { n.replace(list, "") },
		})
}

// put keeps an object. If it was other before, it starts a cycle of the RayClusters that the ClusterQueue has admitted,
// or one in its cohort.
func (n *byName) put(object *unstructured.Unstructured) {
	now, err := readHolder(object)
	if err != nil {
		n.watch.config.Logger.Debug("ignoring an object of Kueue that cannot be read", "reason", err)
		return
	}
	var users []nodepool.ClusterKey
	n.watch.mu.Lock()
	changed := !reflect.DeepEqual(n.kept[object.GetName()], now)
	n.kept[object.GetName()] = now
	for _, job := range n.watch.jobs {
		queue := cmp.Or(n.watch.queues.kept[job.queue], &quotaHolder{})
		concerned := job.queue == now.name || now.cohort != "" && queue.cohort == now.cohort
		if changed && concerned && job.cluster != (nodepool.ClusterKey{}) {
			users = append(users, job.cluster)
		}
	}
	n.watch.mu.Unlock()
	for _, key := range users {
		n.watch.config.Changed(key)
	}
}

func (n *byName) remove(object *unstructured.Unstructured) {
	n.watch.mu.Lock()
	defer n.watch.mu.Unlock()
	delete(n.kept, object.GetName())
}

// replace takes a whole list, or forgets all because they cannot be read.
func (n *byName) replace(list []*unstructured.Unstructured, unread string) {
	n.watch.mu.Lock()
	clear(n.kept)
	n.unread = unread
	n.watch.mu.Unlock()
	for _, object := range list {
		n.put(object)
	}
}

// mostOf returns how much of a resource a ClusterQueue may use in all, or why that is unknown. The caller holds mu.
func (w *Watch) mostOf(queue *quotaHolder, of flavored) (raydemand.Amount, string) {
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

// AddTo adds to a queued RayCluster what Kueue says of its quota.
func (w *Watch) AddTo(cluster *nodepool.Cluster) {
	if w == nil || !cluster.Queue.Queued() {
		return
	}
	of, uid := jobOf(cluster)
	w.mu.Lock()
	defer w.mu.Unlock()
	found, state := w.workloads.Of(of, uid)
	own, known := workloads(found), w.jobs[of]
	switch {
	case len(own) == 0 && known != nil:
		known.others = nil // of another Workload
	case len(own) > 0 && known == nil:
		known = &queuedJob{}
		w.jobs[of] = known
	}
	if state.Unknown != "" {
		cluster.Queue.Quota = &nodepool.Quota{Unread: state.Unknown}
		return
	}
	// Of a RayService with two RayClusters, the one that Kueue follows. It is forgotten with that RayCluster.
	if len(own) > 0 && (known.cluster.Name == "" || cluster.Queue.Parent.Kind == "" || cluster.Queue.Followed) {
		known.cluster = cluster.Key
	}
	var queue *quotaHolder
	var others othersUse
	if admitted := own.admitted(); admitted != nil {
		name := admitted.Status.Admission.ClusterQueue
		queue, others = w.queues.kept[name], known.othersIn(name)
	}
	most := func(of flavored) (raydemand.Amount, string) { return w.mostOf(queue, of) }
	cluster.Queue.Quota = own.quota(cluster, queue, most, others, w.now())
	if found := own.neverStarts(cluster); found != nil {
		cluster.Findings = append(cluster.Findings, *found)
	}
}
