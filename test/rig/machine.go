package rig

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/test/devcluster"
)

// The annotation that keeps Karpenter from a pod, and the taint of a node that Karpenter removes.
const (
	guardAnnotation = "karpenter.sh/do-not-disrupt"
	disruptedTaint  = "karpenter.sh/disrupted"
)

// ObserveMachines records the life of all machines that Karpenter launches, and which pods of a RayCluster are guarded,
// until ctx is done.
func (r *Rig) ObserveMachines(ctx context.Context, namespace, name string, journal *Journal) {
	m := &machines{journal: journal, seen: map[string]Stage{}}
	go follow(ctx, func() (watch.Interface, error) {
		return r.Dynamic.Resource(devcluster.NodeClaims).Watch(ctx, metav1.ListOptions{})
	}, func(event watch.Event) {
		if claim, ok := event.Object.(*unstructured.Unstructured); ok {
			m.claim(claim, event.Type == watch.Deleted)
		}
	})
	nodes := &machines{journal: journal, seen: map[string]Stage{}}
	go follow(ctx, func() (watch.Interface, error) {
		return r.Kube.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	}, func(event watch.Event) {
		if node, ok := event.Object.(*corev1.Node); ok {
			nodes.node(node)
		}
	})
	go r.ObserveGuards(ctx, namespace, name, journal)
}

// machines turns the changes of one kind of object into facts about machines.
type machines struct {
	journal *Journal
	seen    map[string]Stage // the last stage of each machine
}

// note records a stage unless it is the last one.
func (m *machines) note(machine string, stage Stage, detail string) {
	if m.seen[machine] != stage {
		m.seen[machine] = stage
		m.journal.Add(Fact{At: time.Now(), Stage: stage, Machine: machine, Detail: detail})
	}
}

func (m *machines) claim(claim *unstructured.Unstructured, deleted bool) {
	name, labels := claim.GetName(), claim.GetLabels()
	switch {
	case deleted:
		m.note(name, MachineGone, "")
	case claim.GetDeletionTimestamp() != nil:
		m.note(name, MachineLeaving, "NodeClaim "+name+" is deleted")
	case isTrue(claim, "Launched"):
		m.note(name, MachineLaunched, labels["karpenter.sh/capacity-type"]+" "+labels[corev1.LabelInstanceTypeStable])
	}
}

// isTrue reports whether an object has a condition that is True.
func isTrue(object *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == kind && condition["status"] == "True"
	})
}

func (m *machines) node(node *corev1.Node) {
	i := slices.IndexFunc(node.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "NodeClaim" })
	if i < 0 {
		return
	}
	machine := node.OwnerReferences[i].Name
	switch {
	case slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == disruptedTaint }):
		m.note(machine, MachineLeaving, "taint "+disruptedTaint)
	case slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}):
		m.note(machine, MachineReady, "node "+node.Name)
	}
}

// ObserveGuards records when pods of a RayCluster get and lose their guard, until ctx is done.
func (r *Rig) ObserveGuards(ctx context.Context, namespace, name string, journal *Journal) {
	guarded := map[string]bool{}
	follow(ctx, func() (watch.Interface, error) {
		return r.Kube.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "ray.io/cluster=" + name})
	}, func(event watch.Event) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted {
			return
		}
		now := pod.Annotations[guardAnnotation] == "true"
		if now == guarded[pod.Name] {
			return
		}
		guarded[pod.Name] = now
		stage := Unguarded
		if now {
			stage = Guarded
		}
		journal.Add(Fact{At: time.Now(), Stage: stage, Group: pod.Labels["ray.io/group"], Pod: pod.Name})
	})
}
