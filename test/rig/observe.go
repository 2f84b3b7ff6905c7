package rig

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// statePoll is how often the observer reads the GCS. A reply costs the head about 1 ms.
const statePoll = 50 * time.Millisecond

// Observe records the events of a RayCluster in the journal until ctx is done. The RayCluster does not need to exist
// yet.
func (r *Rig) Observe(ctx context.Context, namespace, name string, journal *Journal) {
	r.ObserveKubernetes(ctx, namespace, name, journal)
	go r.followRay(ctx, namespace, name, journal)
}

// ObserveKubernetes is Observe without the facts from Ray. It puts no load on the head.
func (r *Rig) ObserveKubernetes(ctx context.Context, namespace, name string, journal *Journal) {
	go r.followGroups(ctx, namespace, name, journal)
	go r.followPods(ctx, namespace, name, journal)
}

// follow keeps a watch open. It reopens the watch when the API server closes it or stops.
func follow(ctx context.Context, open func() (watch.Interface, error), see func(watch.Event)) {
	for ctx.Err() == nil {
		w, err := open()
		if err != nil {
			pause(ctx, 200*time.Millisecond)
			continue
		}
		drainWatch(ctx, w, see)
		w.Stop()
	}
}

func drainWatch(ctx context.Context, w watch.Interface, see func(watch.Event)) {
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				return
			}
			see(event)
		case <-ctx.Done():
			return
		}
	}
}

// requestAnnotation is the annotation in which Heliostat stores REST requests.
const requestAnnotation = "heliostat.dev/resource-requests"

// followGroups records each change of a group's replicas, the workers that it is to lose, and the REST requests.
func (r *Rig) followGroups(ctx context.Context, namespace, name string, journal *Journal) {
	replicas, named := map[string]int64{}, map[string]bool{}
	var asked string
	open := func() (watch.Interface, error) {
		return r.Dynamic.Resource(RayClusters).Namespace(namespace).Watch(ctx, only(name))
	}
	follow(ctx, open, func(event watch.Event) {
		cluster, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return
		}
		now := Replicas(cluster)
		for group, n := range now {
			if old, known := replicas[group]; known && old != n {
				change := fmt.Sprintf("%d → %d", old, n)
				journal.Add(Fact{At: time.Now(), Stage: GroupPatched, Group: group, From: old, To: n, Detail: change})
			}
			replicas[group] = n
		}
		journal.setReplicas(now)
		eachGroup(cluster, func(group string, spec map[string]any) {
			pods, _, _ := unstructured.NestedStringSlice(spec, "scaleStrategy", "workersToDelete")
			for _, pod := range pods {
				if !named[pod] {
					named[pod] = true
					journal.Add(Fact{At: time.Now(), Stage: Named, Group: group, Pod: pod})
				}
			}
		})
		if now := cluster.GetAnnotations()[requestAnnotation]; now != asked {
			asked = now
			noteRequest(journal, now)
		}
	})
}

func noteRequest(journal *Journal, asked string) {
	stage, detail := DemandSeen, "kept in the RayCluster's annotation"
	if asked == "" {
		stage, detail = DemandGone, "cleared from the RayCluster's annotation"
	}
	journal.Add(Fact{At: time.Now(), Stage: stage, Detail: detail})
}

// Replicas returns the replicas of each worker group of a RayCluster.
func Replicas(cluster *unstructured.Unstructured) map[string]int64 {
	replicas := map[string]int64{}
	eachGroup(cluster, func(group string, spec map[string]any) {
		replicas[group], _, _ = unstructured.NestedInt64(spec, "replicas")
	})
	return replicas
}

// eachGroup calls do with the name and the spec of each worker group.
func eachGroup(cluster *unstructured.Unstructured, do func(name string, spec map[string]any)) {
	groups, _, _ := unstructured.NestedSlice(cluster.Object, "spec", "workerGroupSpecs")
	for _, g := range groups {
		if group, ok := g.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(group, "groupName")
			do(name, group)
		}
	}
}

// followPods records the lifecycle of worker pods.
func (r *Rig) followPods(ctx context.Context, namespace, name string, journal *Journal) {
	seen := map[string]map[Stage]bool{}
	note := func(pod *corev1.Pod, stage Stage, detail string) {
		if seen[pod.Name] == nil {
			seen[pod.Name] = map[Stage]bool{}
		}
		if seen[pod.Name][stage] {
			return
		}
		seen[pod.Name][stage] = true
		group := pod.Labels["ray.io/group"]
		journal.Add(Fact{At: time.Now(), Stage: stage, Group: group, Pod: pod.Name, Detail: detail})
	}
	open := func() (watch.Interface, error) {
		return r.Kube.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: workersOf(name)})
	}
	follow(ctx, open, func(event watch.Event) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return
		}
		note(pod, PodCreated, "")
		if pod.Spec.NodeName != "" {
			note(pod, Scheduled, "on "+pod.Spec.NodeName)
		}
		if pod.Status.Phase == corev1.PodFailed && pod.DeletionTimestamp == nil {
			note(pod, PodFailed, "")
		}
		if pod.DeletionTimestamp != nil {
			note(pod, PodStopping, "")
		}
		if event.Type == watch.Deleted {
			note(pod, PodGone, "")
		}
	})
}

// followRay records what the GCS reports about nodes and pending demand.
func (r *Rig) followRay(ctx context.Context, namespace, name string, journal *Journal) {
	statuses := map[raydemand.NodeID]raydemand.NodeStatus{}
	var pending string
	var asked time.Time // when the last answer was asked for
	for ctx.Err() == nil {
		pause(ctx, statePoll)
		gcs, err := r.GCS(ctx, namespace, name)
		if err != nil {
			continue
		}
		for ctx.Err() == nil {
			began := time.Now()
			state, err := gcs.State(ctx)
			if err != nil {
				break
			}
			noteDemand(journal, state.Demand, &pending)
			for _, node := range state.Nodes {
				if !node.Head && statuses[node.ID] != node.Status {
					noteNode(journal, node, statuses[node.ID], asked)
					statuses[node.ID] = node.Status
				}
			}
			asked = began
			pause(ctx, statePoll)
		}
		gcs.Close()
	}
}

func noteDemand(journal *Journal, demand raydemand.Demand, last *string) {
	now := Describe(demand)
	if now == *last {
		return
	}
	stage := DemandSeen
	if now == "" {
		stage = DemandGone
	}
	journal.Add(Fact{At: time.Now(), Stage: stage, Detail: now})
	*last = now
}

// noteNode records the new status of a node. asked is when the last answer with the status before was asked for.
func noteNode(journal *Journal, node raydemand.Node, before raydemand.NodeStatus, asked time.Time) {
	note := func(stage Stage) {
		journal.Add(Fact{
			At: time.Now(), NotBefore: asked, Stage: stage,
			Group: node.Group, Pod: node.Instance, Node: node.ID.String(),
		})
	}
	if before == "" && node.Status != raydemand.Dead {
		note(NodeAlive)
	}
	switch node.Status {
	case raydemand.Running:
		note(NodeBusy)
	case raydemand.Idle:
		note(NodeIdle)
	case raydemand.Draining, raydemand.Dead:
		if before != raydemand.Draining {
			note(Drained)
		}
	}
}

// Describe returns pending demand as one line, such as 2 × {GPU 1}, placement group [{CPU 1} {GPU 1}], or "" if nothing
// is pending. It omits constraints, which stay until the request is withdrawn.
func Describe(demand raydemand.Demand) string {
	var parts []string
	for _, request := range demand.Requests {
		parts = append(parts, fmt.Sprintf("%d × %s", request.Count, request.Bundle))
	}
	for _, gang := range demand.Gangs {
		bundles := make([]string, len(gang.Bundles))
		for i, bundle := range gang.Bundles {
			bundles[i] = bundle.String()
		}
		parts = append(parts, "placement group ["+strings.Join(bundles, " ")+"]")
	}
	return strings.Join(parts, ", ")
}

// workersOf selects the worker pods of a RayCluster.
func workersOf(cluster string) string {
	return "ray.io/cluster=" + cluster + ",ray.io/node-type=worker"
}

// only selects the object with the given name.
func only(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
}

// FollowDriver records where a driver's work runs until ctx is done.
func FollowDriver(ctx context.Context, driver *Driver, journal *Journal) {
	for seen := 0; ; {
		events, changed := driver.read()
		for ; seen < len(events); seen++ {
			noteWork(ctx, journal, events[seen])
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func noteWork(ctx context.Context, journal *Journal, e Event) {
	switch e.Event {
	case "running":
		journal.Add(Fact{At: e.At, Stage: WorkRan, Pod: e.Pod, Detail: e.ID})
	case "placed":
		for _, id := range e.Nodes {
			// The driver may report a node before the next read of the GCS.
			var node Fact
			known := func(facts []Fact) (ok bool) {
				node, ok = First(facts, func(f Fact) bool { return f.Node == id })
				return ok
			}
			if journal.Wait(ctx, "the node of a placement group", known) != nil {
				return
			}
			journal.Add(Fact{At: e.At, Stage: WorkRan, Group: node.Group, Pod: node.Pod, Node: id, Detail: e.ID})
		}
	}
}

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
