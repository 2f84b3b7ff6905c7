package neighbours

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/rig"
)

// demandLasts is how long demand stays pending in RayClusters that must not change. Kueue suspends a patched RayCluster
// within milliseconds. Heliostat makes one decision per RayCluster and second, so 30 s are about thirty chances for a
// wrong patch. HELIOSTAT_TEST_DEMAND=5m sets a longer time.
const demandLasts = 30 * time.Second

// patience is the limit of each wait. Three Ray heads that start at once on two busy cores take minutes.
const patience = 10 * time.Minute

const (
	team      = "ml"
	queueName = "research"
	queueKey  = "kueue.x-k8s.io/queue-name"
	elastic   = "kueue.x-k8s.io/elastic-job"
)

// Kueue's resources.
var (
	flavors = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2",
		Resource: "resourceflavors"}
	clusterQueues = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "clusterqueues"}
	localQueues   = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "localqueues"}
	workloads     = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}
)

// queued returns a RayCluster with one of Kueue's labels.
func queued(cluster rig.Cluster, annotations map[string]string) *unstructured.Unstructured {
	cluster.Namespace, cluster.IdleSeconds = team, 600
	cluster.Annotations = map[string]string{"heliostat.dev/mode": "managed"}
	for key, value := range annotations {
		cluster.Annotations[key] = value
	}
	object := cluster.Manifest()
	object.SetLabels(map[string]string{queueKey: queueName})
	return object
}

// gpu is a worker group with zero replicas.
var gpu = rig.Group{Name: "gpu", Max: 2, Devices: map[string]int64{"nvidia.com/gpu": 1}}

// TestNoQueuedRayClusterIsPatched creates pending demand in three RayClusters with real Ray: one that Kueue queues, one
// with the annotation for elastic RayClusters, and the child of a queued RayJob. Kueue ignores the annotation because
// its feature gate is off. All three have the annotation for managed mode. At the end, a manual patch shows what a
// patch by Heliostat would do.
func TestNoQueuedRayClusterIsPatched(t *testing.T) {
	t.Parallel()
	b := besideKueue(t, rig.Options{KueueFeatureGates: []string{"ElasticJobsViaWorkloadSlices=false"}})
	shared := rig.Group{Name: "shared", Max: 2, Devices: map[string]int64{"nvidia.com/gpu.shared": 1}}
	floor := rig.Group{Name: "floor", Min: 1, Max: 2}
	b.create(rig.RayClusters, queued(rig.Cluster{Name: "plain", Groups: []rig.Group{gpu, shared}},
		map[string]string{"heliostat.dev/num-gpus-sync": "enforce"}))
	b.create(rig.RayClusters, queued(rig.Cluster{Name: "annotated", Groups: []rig.Group{gpu, floor}},
		map[string]string{elastic: "true"}))
	b.create(rig.RayJobs, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayJob",
		"metadata": map[string]any{"namespace": team, "name": "train", "labels": map[string]any{queueKey: queueName},
			"annotations": map[string]any{"heliostat.dev/mode": "managed"}},
		"spec": map[string]any{"submissionMode": "InteractiveMode", "shutdownAfterJobFinishes": true,
			"rayClusterSpec": rig.Cluster{IdleSeconds: 600, Groups: []rig.Group{gpu}}.Spec()},
	}})
	b.admitted("RayCluster", "plain")
	b.admitted("RayCluster", "annotated")
	b.admitted("RayJob", "train")
	child := b.childOf("train")
	b.ownedElsewhere("wrapped")

	still := []*stillness{}
	for _, name := range []string{"plain", "annotated", child} {
		still = append(still, b.demand(name))
	}
	b.notElastic("annotated")
	b.asksByREST("plain")
	b.needsNumGPUs("plain", "shared")
	b.saysWhy(map[string]string{"plain": "RayCluster plain", "annotated": "RayCluster annotated",
		child: "RayJob train", "wrapped": "ConfigMap wrapper"})

	wait := waitingTime(t)
	b.say("work waits for %v", wait)
	select {
	case <-time.After(wait):
	case <-t.Context().Done():
		t.Fatal(context.Cause(t.Context()))
	}
	for _, s := range still {
		if err := b.view(s.name).wants("gpu"); err != nil {
			t.Errorf("RayCluster %s: the demand did not last: %v", s.name, err)
		}
		s.end()
	}
	b.patchByHand("plain")
	b.patchByHand("annotated")
}

// waitingTime returns the value of HELIOSTAT_TEST_DEMAND, or demandLasts if it is not set.
func waitingTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("HELIOSTAT_TEST_DEMAND")
	if text == "" {
		return demandLasts
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < demandLasts {
		t.Fatalf("HELIOSTAT_TEST_DEMAND=%s: want a duration of at least %v (%v)", text, demandLasts, err)
	}
	return wait
}

func (b *beside) create(resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	b.Helper()
	if err := b.lab.CreateAny(b.Context(), resource, object); err != nil {
		b.Fatal(err)
	}
}

// childOf waits for the RayCluster that the operator creates for a RayJob.
func (b *beside) childOf(job string) (name string) {
	b.Helper()
	b.until("the RayCluster of RayJob "+job, func() error {
		list, err := b.lab.Dynamic.Resource(rig.RayClusters).Namespace(team).List(b.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.Kind == "RayJob" &&
				owner.Name == job {
				name = list.Items[i].GetName()
				return nil
			}
		}
		return errors.New("there is none")
	})
	return name
}

// ownedElsewhere creates a RayCluster without a Kueue label. An object with the label controls it. Kueue does not know
// the kind of that owner, and no pod runs. The test checks that Heliostat follows the owner reference.
func (b *beside) ownedElsewhere(name string) {
	b.Helper()
	owner, err := b.lab.Kube.CoreV1().ConfigMaps(team).Create(b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "wrapper",
			Labels: map[string]string{queueKey: queueName}}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	object := queued(rig.Cluster{Name: name, Groups: []rig.Group{gpu}}, nil)
	object.SetLabels(nil)
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner,
		corev1.SchemeGroupVersion.WithKind("ConfigMap"))})
	if err := unstructured.SetNestedField(object.Object, true, "spec", "suspend"); err != nil {
		b.Fatal(err)
	}
	b.create(rig.RayClusters, object)
}

// notElastic checks that Kueue ignored the annotation.
func (b *beside) notElastic(name string) {
	b.Helper()
	object := b.rayCluster(name)
	text, err := object.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	if object.GetAnnotations()[elastic] != "true" || strings.Contains(string(text), "schedulingGates") {
		b.Fatalf("RayCluster %s: want the annotation and no gate: %s", name, text)
	}
}

// stillness checks that a RayCluster does not change while it has pending demand.
type stillness struct {
	b          *beside
	name       string
	generation int64
	head       types.UID
	stop       context.CancelFunc
	done       chan struct{}
}

// demand submits a task that waits for a GPU. It watches the RayCluster from before that time.
func (b *beside) demand(name string) *stillness {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	if err := b.lab.HeadAlive(ctx, team, name); err != nil {
		b.Fatal(err)
	}
	s := b.watch(name)
	driver, err := b.lab.Driver(ctx, team, name, name)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(driver.Kill)
	if err := driver.Do(rig.Command{Do: "task", ID: "work", GPUs: 1}); err != nil {
		b.Fatal(err)
	}
	b.until("Heliostat to see the demand in "+name, func() error { return b.view(name).wants("gpu") })
	b.say("RayCluster %s: generation %d, head %s; a task waits for a GPU", name, s.generation, s.head)
	return s
}

func (b *beside) watch(name string) *stillness {
	b.Helper()
	object := b.rayCluster(name)
	head, err := b.lab.HeadPod(b.Context(), team, name)
	if err != nil {
		b.Fatal(err)
	}
	s := &stillness{b: b, name: name, generation: object.GetGeneration(), head: head.UID, done: make(chan struct{})}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(b.Context())
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: object.GetResourceVersion()}
	stream, err := b.lab.Dynamic.Resource(rig.RayClusters).Namespace(team).Watch(ctx, options)
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		defer close(s.done)
		defer stream.Stop()
		for {
			select {
			case event, open := <-stream.ResultChan():
				if object, is := event.Object.(*unstructured.Unstructured); open && is {
					s.check(object)
				} else if ctx.Err() == nil {
					b.Errorf("the watch of RayCluster %s ended: %v", name, event)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return s
}

func (s *stillness) check(object *unstructured.Unstructured) {
	suspended, _, err := unstructured.NestedBool(object.Object, "spec", "suspend")
	if object.GetGeneration() != s.generation || suspended || err != nil {
		s.b.Errorf("%7.2fs RayCluster %s: generation %d, suspend %t, replicas %v, %v; want generation %d and no suspension",
			time.Since(s.b.began).Seconds(), s.name, object.GetGeneration(), suspended, rig.Replicas(object), err, s.generation)
	}
}

// end checks that the RayCluster has not changed.
func (s *stillness) end() {
	s.stop()
	<-s.done
	object := s.b.rayCluster(s.name)
	s.check(object)
	head, err := s.b.lab.HeadPod(s.b.Context(), team, s.name)
	if err != nil || head.UID != s.head {
		s.b.Errorf("RayCluster %s: head pod %s, %v; want %s", s.name, head.UID, err, s.head)
	}
	s.b.say("RayCluster %s: generation %d, head %s, suspend false", s.name, object.GetGeneration(), head.UID)
}

// asksByREST requests capacity over REST. Heliostat stores the request and launches nothing.
func (b *beside) asksByREST(name string) {
	b.Helper()
	var answer struct {
		Requested []any
		NotScaled string
	}
	b.call(http.MethodPost, rig.RequestPath(team, name), `{"bundles": [{"GPU": 1}, {"GPU": 1}]}`, &answer)
	if len(answer.Requested) != 1 || !strings.Contains(answer.NotScaled, "Kueue queues it (queue "+queueName) {
		b.Errorf("request_resources answers %+v, want what was requested and why nothing is launched", answer)
	}
	b.say("request_resources: %s", answer.NotScaled)
}

// needsNumGPUs waits until Heliostat reports a wrong number of GPUs, and checks the reason why Heliostat does not write
// it.
func (b *beside) needsNumGPUs(name, group string) {
	b.Helper()
	b.until("the number of GPUs of group "+group, func() error {
		for _, g := range b.view(name).Groups {
			if g.Name == group && g.NumGPUs.Mismatch {
				if g.NumGPUs.Sync.Code != "not-managed" || !strings.Contains(g.NumGPUs.Sync.Why,
					"Kueue queues it (queue "+queueName) {
					b.Errorf("num-gpus-sync of group %s: %+v, want not-managed because of Kueue", group, g.NumGPUs.Sync)
				}
				return nil
			}
		}
		return errors.New("no mismatch is seen")
	})
}

// saysWhy checks the reason that Heliostat reports for each RayCluster, and the object that it names as the source of
// Kueue's mark.
func (b *beside) saysWhy(places map[string]string) {
	b.Helper()
	for name, place := range places {
		b.until("shadow of RayCluster "+name, func() error {
			v := b.view(name)
			for _, want := range []string{"queue " + queueName, place, "again without the label " + queueKey,
				elastic + `: "true"`} {
				if v.Mode != "shadow" || !strings.Contains(v.ModeReason, want) {
					return fmt.Errorf("mode %s because %q, want shadow and %q", v.Mode, v.ModeReason, want)
				}
			}
			return nil
		})
		b.say("Event QueuedByKueue on RayCluster %s: %s", name, b.event(name, "QueuedByKueue"))
	}
}

// patchByHand scales up a group as Heliostat would. It waits until Kueue has suspended the RayCluster and its head is
// gone.
func (b *beside) patchByHand(name string) {
	b.Helper()
	head, err := b.lab.HeadPod(b.Context(), team, name)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	version := b.rayCluster(name).GetResourceVersion()
	stream, err := b.lab.Dynamic.Resource(rig.RayClusters).Namespace(team).Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: version})
	if err != nil {
		b.Fatal(err)
	}
	defer stream.Stop()
	patched := time.Now()
	_, err = b.lab.Dynamic.Resource(rig.RayClusters).Namespace(team).Patch(ctx, name, types.JSONPatchType,
		[]byte(`[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 1}]`), metav1.PatchOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for event := range stream.ResultChan() {
		object, is := event.Object.(*unstructured.Unstructured)
		if !is {
			b.Fatalf("watching RayCluster %s: %v", name, event.Object)
		}
		if suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); suspended {
			b.say("RayCluster %s: patched by hand, and suspended by Kueue %d ms later (generation %d)", name,
				time.Since(patched).Milliseconds(), object.GetGeneration())
			b.until("the end of head pod "+head.Name, func() error {
				pod, err := b.lab.Kube.CoreV1().Pods(team).Get(ctx, head.Name, metav1.GetOptions{})
				if err == nil && pod.UID == head.UID && pod.DeletionTimestamp == nil {
					return errors.New("it is still there")
				}
				return nil
			})
			b.say("RayCluster %s: head %s is deleted %d ms after the patch", name, head.UID,
				time.Since(patched).Milliseconds())
			b.say("Kueue's Event on RayCluster %s: Stopped: %s", name, b.event(name, "Stopped"))
			return
		}
	}
	b.Fatalf("RayCluster %s: Kueue did not suspend it after a patch of replicas", name)
}
