package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodes"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Cluster reads a RayCluster and its pods from the caches; nodepool.ErrGone if there is none. The RayCluster is never
// older than what this process last wrote to it or read from the API server.
func (m *Manager) Cluster(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error) {
	object, err := m.kept(key)
	if err != nil {
		return nodepool.Cluster{}, err
	}
	return m.describe(object, m.pods.of(key)), nil
}

// Fresh reads the same from the API server, with the namespace if that sets the mode.
func (m *Manager) Fresh(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	object, err := m.getRayCluster(ctx, m.rayClusters, key)
	if err != nil {
		return nodepool.Cluster{}, err
	}
	known := m.pods.of(key)
	list, err := m.core.Pods(key.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: decode.ClusterLabel + "=" + key.Name})
	if err != nil {
		return nodepool.Cluster{}, fmt.Errorf("listing pods of %s: %w", key, err)
	}
	pods := decode.PodsOf(list.Items)
	m.storage.comparePods(known, pods)
	m.newestSeen.remember(object)
	cluster := m.describe(object, pods)
	if m.nodes != nil {
		m.namespaces.Recheck(ctx, &cluster)
	}
	return cluster, nil
}

// Apply writes one guarded JSON patch, all targets or none, and returns the RayCluster's new generation.
// nodepool.ErrConflict: the RayCluster has changed since it was read. nodepool.ErrReadOnly: it must not be changed, for
// the reason in the error. nodepool.ErrNotLeading: this process may not write. nodepool.ErrGone: there is no such
// RayCluster. nodepool.ErrOutdated: reading its owners took until the change was no longer valid. Any other error: the
// change was rejected, an admission webhook altered it, or the API server did not respond. Except after a rejection, it
// may have been stored.
func (m *Manager) Apply(ctx context.Context, change nodepool.Change) (int64, error) {
	object, err := m.newest(change.Cluster)
	if err != nil {
		return 0, err
	}
	if len(change.Targets) == 0 {
		return object.GetGeneration(), nil
	}
	if err := m.writable(ctx, object, change.OwnersReadSince); err != nil {
		return 0, err
	}
	if !change.ValidUntil.IsZero() && time.Now().After(change.ValidUntil) {
		return 0, fmt.Errorf("patching %s: %w", change.Cluster, nodepool.ErrOutdated)
	}
	written, err := m.writeAsOwner(ctx, "patching", object, func(object map[string]any, term string) ([]byte, error) {
		change.Term = term
		return scalePatch(object, change)
	})
	if err != nil {
		return 0, err
	}
	return written.GetGeneration(), altered(written, change)
}

// altered returns an error if the API server has stored something else than a change says: then an admission webhook
// has altered it, and would again.
func altered(written *unstructured.Unstructured, change nodepool.Change) error {
	groups := decode.FieldsOf(written.Object, nil).Object("spec").Objects("workerGroupSpecs")
	for _, target := range change.Targets {
		group, _, err := groupOf(groups, target.Index, target.Group)
		names := group.Object("scaleStrategy").TextList("workersToDelete")
		switch stored := group.Int32("replicas", 0); {
		case err != nil:
			return fmt.Errorf("patching %s: an admission webhook has moved group %s", change.Cluster, target.Group)
		case stored != target.Replicas:
			return fmt.Errorf("patching %s: an admission webhook gave group %s %d replicas instead of %d",
				change.Cluster, target.Group, stored, target.Replicas)
		case target.WorkersToDelete != nil && !slices.Equal(names, target.WorkersToDelete):
			return fmt.Errorf("patching %s: an admission webhook stored group %s without the names of %s in "+
				"workersToDelete", change.Cluster, target.Group, strings.Join(target.WorkersToDelete, ", "))
		}
	}
	return nil
}

// writable returns nil, or why the RayCluster must not be changed. It reads owners from the API server unless they were
// read since that time: the patch cannot test their labels, and an owner that Kueue admits forbids the change.
func (m *Manager) writable(ctx context.Context, object *unstructured.Unstructured, since time.Time) error {
	from := m.decodes.decode(object)
	return m.mayWriteTo(ctx, from.Cluster, from.Ownership, since)
}

func (m *Manager) mayWriteTo(
	ctx context.Context, cluster nodepool.Cluster, ownership decode.Ownership, since time.Time,
) error {
	if m.owners != nil && ownership.Controller != (decode.Controller{}) {
		free := cluster
		free.Queue = nodepool.Queue{}
		if err := free.Writable(); err != nil {
			return err
		}
		queue, err := m.owners.Read(ctx, cluster.Key, ownership, since)
		if err != nil {
			return err
		}
		if queue.Queued() || !cluster.Queue.Queued() {
			cluster.Queue = queue
		}
	}
	m.kueue.AddTo(&cluster)
	return cluster.Writable()
}

// conflictOrRefusal distinguishes a failed test of a patch from a change that an admission policy or the schema
// rejects: both are a 422. If the current object gives the very same patch, all its tests hold, so the change was
// rejected, and a retry does not help.
func (m *Manager) conflictOrRefusal(
	ctx context.Context, doing string, key nodepool.ClusterKey, invalid error, patch []byte,
	build func(object map[string]any) ([]byte, error),
) error {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	object, err := m.getRayCluster(ctx, m.rayClusters, key)
	if err != nil {
		return invalid
	}
	m.newestSeen.remember(object)
	if again, err := build(object.Object); err != nil || !bytes.Equal(again, patch) {
		return invalid
	}
	answer, _ := errors.AsType[*apierrors.StatusError](invalid)
	return fmt.Errorf("%s %s: refused by the API server: %w", doing, key, answer)
}

// patch sends a patch and remembers the response as the newest object.
func (m *Manager) patch(
	ctx context.Context,
	client dynamic.NamespaceableResourceInterface,
	key nodepool.ClusterKey,
	kind types.PatchType,
	patch []byte,
) (*unstructured.Unstructured, error) {
	if err := m.options.writable(); err != nil {
		return nil, fmt.Errorf("patching %s: %w", key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	written, err := client.Namespace(key.Namespace).
		Patch(ctx, key.Name, kind, patch, metav1.PatchOptions{FieldManager: nodepool.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("patching %s: %w", key, classified(err))
	}
	m.newestSeen.remember(written)
	return written, nil
}

// classified converts the API server's error into one that callers check for. A failed test of a JSON patch is a 422
// Invalid, not a 409, and the response does not say which test failed (docs/reference/facts.md#failed-patch-test).
func classified(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", nodepool.ErrGone, err)
	case apierrors.IsConflict(err), apierrors.IsInvalid(err):
		return fmt.Errorf("%w: %w", nodepool.ErrConflict, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %w", nodepool.ErrDenied, err)
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook"):
		return fmt.Errorf("%w: %w", nodepool.ErrWebhook, err)
	case reflector.Unserved(err):
		return fmt.Errorf("%w: %w", nodepool.ErrUnserved, err)
	}
	return err
}

func isGone(err error) bool { return errors.Is(err, nodepool.ErrGone) }

func isConflict(err error) bool { return errors.Is(err, nodepool.ErrConflict) }

// getRayCluster reads from the API server, with the client for users' calls or the one for background work. An object
// that is older than the known one proves that the storage went back.
func (m *Manager) getRayCluster(
	ctx context.Context,
	client dynamic.NamespaceableResourceInterface,
	key nodepool.ClusterKey,
) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	known, unknown := m.kept(key)
	object, err := client.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading RayCluster %s: %w", key, classified(err))
	}
	if unknown == nil {
		m.storage.compare(known.GetResourceVersion(), object.GetResourceVersion())
	}
	return object, nil
}

// newest returns the newest known object, from the source or from a response to this process.
func (m *Manager) newest(key nodepool.ClusterKey) (*unstructured.Unstructured, error) {
	object, err := m.kept(key)
	if err != nil {
		return nil, err
	}
	return decode.Whole(object), nil
}

// kept returns the same as the cache keeps it: use its metadata alone, or decode it.
func (m *Manager) kept(key nodepool.ClusterKey) (*unstructured.Unstructured, error) {
	object, err := m.source.rayCluster(key)
	if err != nil {
		return nil, err
	}
	object = m.newestSeen.newer(key, object)
	if object == nil {
		m.forget(key) // again: a cycle that was reading it when it was deleted has remembered it
		return nil, fmt.Errorf("reading RayCluster %s: %w", key, nodepool.ErrGone)
	}
	return object, nil
}

// describe returns a RayCluster and its pods with what everything else says about them. The comments say which facts
// need others first. Findings are listed in the same order.
func (m *Manager) describe(object *unstructured.Unstructured, pods []*decode.Pod) nodepool.Cluster {
	from := m.decodes.decode(object)
	cluster := decode.Join(from, pods)
	m.owners.AddTo(&cluster, from.Ownership) // an owner may say that Kueue queues it
	m.kueue.AddTo(&cluster)                  // after that: only a queued one has a quota
	m.provisioning.AddTo(&cluster)
	m.buffers.AddTo(&cluster, object)
	m.pool.AddTo(&cluster)
	m.reportToken(&cluster)
	m.requests.AddTo(&cluster)
	switch {
	case m.nodes != nil:
		m.quotas.AddTo(&cluster)
		m.nodes.AddTo(&cluster)      // where its pods can run
		m.namespaces.AddTo(&cluster) // after that: without the right to read them, slices of GPUs say if that matters
	case m.options.Single != nil:
		m.withoutNodes(&cluster)
	}
	return cluster
}

// withoutNodes adds what the single form knows about where a cluster can run: KubeRay's Role grants it nothing beyond
// the namespace. It reports that for clusters with GPUs, where it matters.
func (m *Manager) withoutNodes(cluster *nodepool.Cluster) {
	gpus := false
	for i := range cluster.Groups {
		group := &cluster.Groups[i]
		group.Slices = landing.SlicesOf(m.options.GPUs, &group.Pod, nil)
		group.Announces = group.NewWorker(cluster.RayVersion).Announces(m.options.GPUs, nil, nil, nil)
		gpus = gpus || len(group.Slices) > 0
	}
	if !gpus {
		return
	}
	cluster.Findings = append(cluster.Findings, raydemand.Finding{
		Code: nodes.NodesForbidden, Severity: raydemand.Info, Object: "RayCluster " + cluster.Key.String(),
		Why: "a sidecar may not read nodes, so it plans groups by the resources that their pods report: it knows " +
			"their GPUs from the template alone, and treats pools of nodes as unlimited",
		Fix: "serve the RayCluster with `autoscaler serve` if you need that",
	})
}
