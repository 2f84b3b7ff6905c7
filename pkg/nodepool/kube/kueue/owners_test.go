package kueue

import (
	"errors"
	"log/slog"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

const gate = "{spec: {schedulingGates: [{name: kueue.x-k8s.io/topology}, {name: kueue.x-k8s.io/elastic-job}]}}"

// templatedCluster has a head and two groups, with what a test puts into the metadata and the three templates.
func templatedCluster(t *testing.T, metadata string, templates ...string) *unstructured.Unstructured {
	t.Helper()
	for len(templates) < 3 {
		templates = append(templates, "{}")
	}
	return &unstructured.Unstructured{Object: objectOf(t, `
metadata: {namespace: ml, name: llm, uid: u-1, resourceVersion: "8", `+metadata+`}
spec:
  headGroupSpec: {template: `+templates[0]+`}
  workerGroupSpecs:
  - {groupName: cpu, replicas: 2, minReplicas: 0, maxReplicas: 5, template: `+templates[1]+`}
  - {groupName: gpu, replicas: 0, minReplicas: 0, maxReplicas: 5, template: `+templates[2]+`}
`)}
}

func objectOf(t *testing.T, manifest string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// kinds are those of owners that the stand-in of an API server has.
func kinds() meta.RESTMapper {
	all := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		{Group: "ray.io", Version: "v1", Kind: "RayJob"}, {Group: "ray.io", Version: "v1", Kind: "RayService"},
		{Group: "workload.codeflare.dev", Version: "v1beta2", Kind: "AppWrapper"},
	} {
		all.Add(kind, meta.RESTScopeNamespace)
	}
	all.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Tenant"}, meta.RESTScopeRoot)
	return all
}

// above is an owner, which another one may own.
func above(version, kind, namespace, name, queue string,
	owner *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name)},
	}
	if queue != "" {
		object.Labels = map[string]string{nodepool.QueueLabel: queue}
	}
	if owner != nil {
		object.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "bystander"}, {
			APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: new(true)}}
	}
	return object
}

// rayJob and its RayCluster.
func rayJob(queue string, owner *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return above("ray.io/v1", "RayJob", "ml", "train", queue, owner)
}

const byTrain = "labels: {a: b}, ownerReferences: [{apiVersion: ray.io/v1, kind: RayJob, name: train, uid: uid-of-train, controller: true}]"

// household is what knows of owners, with the API server that it reads.
type household struct {
	*Owners
	client  *metadatafake.FakeMetadataClient
	whole   *dynamicfake.FakeDynamicClient
	changed []nodepool.ClusterKey
}

func newHousehold(t *testing.T, owners ...*metav1.PartialObjectMetadata) *household {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	h := &household{client: metadatafake.NewSimpleMetadataClient(scheme), whole: dynamicfake.NewSimpleDynamicClient(scheme)}
	for _, owner := range owners {
		version, err := schema.ParseGroupVersion(owner.APIVersion)
		if err != nil {
			t.Fatal(err)
		}
		resource := version.WithResource(strings.ToLower(owner.Kind) + "s")
		if err := h.client.Tracker().Create(resource, owner, owner.Namespace); err != nil {
			t.Fatal(err)
		}
	}
	h.Owners = NewOwners(h.client, h.whole, kinds(), slog.New(slog.DiscardHandler),
		func(key nodepool.ClusterKey) { h.changed = append(h.changed, key) })
	return h
}

// fails has reads of a resource end with the error.
func (h *household) fails(resource string, err error) {
	h.client.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object,
		error) {
		return true, nil, err
	})
}

func (h *household) reads() int { return len(h.client.Actions()) }

func noRight(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "train", errors.New("no right to get"))
}

func TestAQueueIsReadFromTheOwners(t *testing.T) {
	job := nodepool.Owner{Kind: "RayJob", Name: "train", UID: "uid-of-train"}
	wrapper := above("workload.codeflare.dev/v1beta2", "AppWrapper", "ml", "wrapped", "research", nil)
	tenant := above("example.com/v1", "Tenant", "", "acme", "research", nil)
	admitted := "{metadata: {labels: {kueue.x-k8s.io/podset: gpu, kueue.x-k8s.io/local-queue-name: research}}}"
	for name, c := range map[string]struct {
		owners    []*metav1.PartialObjectMetadata
		metadata  string
		templates []string
		forbidden string
		want      nodepool.Queue
		unread    string
	}{
		"a RayJob in a queue": {owners: []*metav1.PartialObjectMetadata{rayJob("research", nil)},
			want: nodepool.Queue{Name: "research", Parent: job,
				Mark: "label kueue.x-k8s.io/queue-name on RayJob train"}},
		"a RayJob in none": {owners: []*metav1.PartialObjectMetadata{rayJob("", nil)}},
		"the owner of a RayJob": {owners: []*metav1.PartialObjectMetadata{rayJob("", wrapper), wrapper},
			want: nodepool.Queue{Name: "research", Parent: nodepool.Owner{Kind: "AppWrapper", Name: "wrapped", UID: "uid-of-wrapped"},
				Mark: "label kueue.x-k8s.io/queue-name on AppWrapper wrapped"}},
		"an owner without a namespace": {owners: []*metav1.PartialObjectMetadata{rayJob("", tenant), tenant},
			want: nodepool.Queue{Name: "research", Parent: nodepool.Owner{Kind: "Tenant", Name: "acme", UID: "uid-of-acme"},
				Mark: "label kueue.x-k8s.io/queue-name on Tenant acme"}},
		"old marks under an owner in no queue": {owners: []*metav1.PartialObjectMetadata{rayJob("", nil)},
			templates: []string{"{}", admitted}},
		"an owner that is gone": {},
		"an owner made anew under its name": {owners: []*metav1.PartialObjectMetadata{rayJob("research", nil)},
			metadata: strings.Replace(byTrain, "uid-of-train", "another", 1)},
		"an owner that controls nothing": {owners: []*metav1.PartialObjectMetadata{rayJob("research", nil)},
			metadata: strings.Replace(byTrain, "controller: true", "controller: false", 1)},
		"an owner that may not be read": {owners: []*metav1.PartialObjectMetadata{rayJob("research", nil)},
			forbidden: "rayjobs", unread: "RayJob train"},
		"but whose pods Kueue has admitted": {owners: []*metav1.PartialObjectMetadata{rayJob("research", nil)},
			forbidden: "rayjobs", templates: []string{"{}", admitted},
			want: nodepool.Queue{Name: "research", Parent: job,
				Unfollowed: "RayJob train cannot be read",
				Mark:       "label kueue.x-k8s.io/podset in its pod templates; RayJob train cannot be read"}},
		"a kind that nobody serves": {metadata: strings.Replace(byTrain, "ray.io/v1", "gone.io/v1", 1),
			unread: "RayJob train"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHousehold(t, c.owners...)
				if c.forbidden != "" {
					h.fails(c.forbidden, noRight(c.forbidden))
				}
				if c.metadata == "" {
					c.metadata = byTrain
				}
				first := decode.DecodeObject(templatedCluster(t, c.metadata, c.templates...))
				h.AddTo(&first.Cluster, first.Ownership)
				owned := first.Ownership.Controller != (decode.Controller{})
				if err := first.Cluster.Writable(); owned != errors.Is(err, nodepool.ErrReadOnly) {
					t.Errorf("before the owner is read: %v", err)
				}
				synctest.Wait()
				again := decode.DecodeObject(templatedCluster(t, c.metadata, c.templates...))
				h.AddTo(&again.Cluster, again.Ownership)
				want := c.want
				want.Elastic = again.Ownership.Elastic
				if diff := cmp.Diff(want, again.Cluster.Queue); diff != "" {
					t.Errorf("queue (-want +got):\n%s", diff)
				}
				var seen string
				for _, finding := range again.Cluster.Findings {
					if finding.Code == Unread {
						seen = finding.Seen
					}
				}
				if seen != c.unread {
					t.Errorf("unread owner %q, want %q: %+v", seen, c.unread, again.Cluster.Findings)
				}
			})
		})
	}
}

func TestOwnersThatOwnEachOtherEndTheSearch(t *testing.T) {
	circle := rayJob("", nil)
	circle = rayJob("", circle)
	h := newHousehold(t, circle)
	from := decode.DecodeObject(templatedCluster(t, byTrain)).Ownership
	queue, err := h.Read(t.Context(), llm, from, time.Time{})
	if err != nil || queue.Queued() || h.reads() != maxOwners {
		t.Errorf("queue %+v, error %v after %d reads, want none after %d", queue, err, h.reads(), maxOwners)
	}
}

func TestOwnersAreReadOnceAndAgainMuchLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHousehold(t, rayJob("research", nil))
		look := func() nodepool.Queue {
			from := decode.DecodeObject(templatedCluster(t, byTrain))
			h.AddTo(&from.Cluster, from.Ownership)
			synctest.Wait()
			return from.Cluster.Queue
		}
		// While the first answer is on its way, cycles ask again.
		reading := make(chan struct{})
		h.client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object,
			error) {
			<-reading
			return false, nil, nil
		})
		look()
		look()
		close(reading)
		for range 100 {
			look()
			time.Sleep(time.Second)
		}
		if len(h.changed) != 1 || h.reads() != 1 || !look().Queued() {
			t.Errorf("%d reads, %d cycles asked for within 100 s, want one of each", h.reads(), len(h.changed))
		}
		time.Sleep(answersLast)
		if !look().Queued() || h.reads() != 2 || len(h.changed) != 1 {
			t.Errorf("%d reads, %d cycles asked for after %v, want a second read and no news", h.reads(),
				len(h.changed), answersLast)
		}
	})
}

// TestAnOwnerThatCannotBeReadIsNotAskedForAllTheTime because cycles ask several times a second.
func TestAnOwnerThatCannotBeReadIsNotAskedForAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHousehold(t, rayJob("", nil))
		h.fails("rayjobs", apierrors.NewServiceUnavailable("no endpoints of the webhook"))
		from := decode.Ownership{Controller: decode.Controller{APIVersion: "ray.io/v1", Kind: "RayJob", Name: "train", UID: "uid-of-train"}}
		for range 300 { // a minute of cycles
			h.AddTo(&nodepool.Cluster{Key: llm}, from)
			synctest.Wait()
			time.Sleep(200 * time.Millisecond)
		}
		if n := h.reads(); n < 5 || n > 20 {
			t.Errorf("it was read %d times in a minute, want about 10", n)
		}
	})
}

// TestKueueFollowsAParentWithTheFlag asserts when Kueue takes the replicas of a RayCluster for its parent (Kueue v0.19.0,
// UpdatePodSets in pkg/controller/jobs/raycluster/common.go).
func TestKueueFollowsAParentWithTheFlag(t *testing.T) {
	const service = "labels: {a: b}, ownerReferences: [{apiVersion: ray.io/v1, kind: RayService, name: chat, uid: uid-of-chat, controller: true}]"
	passedOn := strings.Replace(service, "a: b", "kueue.x-k8s.io/queue-name: research", 1)
	chat := above("ray.io/v1", "RayService", "ml", "chat", "research", nil)
	wrapper := above("workload.codeflare.dev/v1beta2", "AppWrapper", "ml", "wrapped", "research", nil)
	for name, c := range map[string]struct {
		owners        []*metav1.PartialObjectMetadata
		metadata      string
		whole, reason string
	}{
		"a RayJob": {metadata: byTrain, owners: []*metav1.PartialObjectMetadata{rayJob("research", nil)},
			whole: "{kind: RayJob, metadata: {name: train}, spec: {rayClusterSpec: {enableInTreeAutoscaling: true}}, status: {rayClusterName: llm}}"},
		"a RayJob without the flag": {metadata: byTrain, owners: []*metav1.PartialObjectMetadata{rayJob("research", nil)},
			whole:  "{kind: RayJob, metadata: {name: train}, spec: {rayClusterSpec: {}}, status: {rayClusterName: llm}}",
			reason: "RayJob train has no spec.rayClusterSpec.enableInTreeAutoscaling: true"},
		"an active RayCluster": {metadata: service, owners: []*metav1.PartialObjectMetadata{chat},
			whole: "{kind: RayService, metadata: {name: chat}, spec: {rayClusterConfig: {enableInTreeAutoscaling: true}}, status: {activeServiceStatus: {rayClusterName: llm}}}"},
		"an active one that has the label itself": {metadata: passedOn, owners: []*metav1.PartialObjectMetadata{chat},
			whole: "{kind: RayService, metadata: {name: chat}, spec: {rayClusterConfig: {enableInTreeAutoscaling: true}}, status: {activeServiceStatus: {rayClusterName: llm}}}"},
		"one that is not active yet": {metadata: passedOn, owners: []*metav1.PartialObjectMetadata{chat},
			whole:  "{kind: RayService, metadata: {name: chat}, spec: {rayClusterConfig: {enableInTreeAutoscaling: true}}, status: {activeServiceStatus: {rayClusterName: old}}}",
			reason: `status.activeServiceStatus.rayClusterName of RayService chat is "old"`},
		"a wrapper": {metadata: byTrain, owners: []*metav1.PartialObjectMetadata{rayJob("", wrapper), wrapper},
			reason: "it follows those of a RayJob or RayService alone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHousehold(t, c.owners...)
				if c.whole != "" {
					whole := object(t, c.whole)
					whole.SetAPIVersion("ray.io/v1")
					whole.SetNamespace("ml")
					kind := strings.ToLower(whole.GetKind()) + "s"
					if err := h.whole.Tracker().Create(schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: kind}, whole, "ml"); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 {
					read := decode.DecodeObject(templatedCluster(t, c.metadata, gate, gate, gate))
					h.AddTo(&read.Cluster, read.Ownership)
					synctest.Wait()
				}
				read := decode.DecodeObject(templatedCluster(t, c.metadata, gate, gate, gate))
				h.AddTo(&read.Cluster, read.Ownership)
				queue := read.Cluster.Queue
				if queue.Followed != (c.reason == "") || !strings.Contains(queue.Unfollowed, c.reason) {
					t.Errorf("followed %t, %q; want %q", queue.Followed, queue.Unfollowed, c.reason)
				}
				queue.Quota = &nodepool.Quota{Elastic: true, Admitted: true}
				if queue.Scalable() != (c.reason == "") {
					t.Errorf("scalable %t: %s", queue.Scalable(), queue.Refusal())
				}
			})
		})
	}
}

func TestAnOlderReadingOfOwnersDoesNotReplaceANewerAnswer(t *testing.T) {
	key := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	from := decode.Ownership{Controller: decode.Controller{APIVersion: "ray.io/v1", Kind: "RayJob", Name: "train", UID: "uid-of-train"}}
	h := newHousehold(t, rayJob("", nil))
	h.answers[key] = ownerAnswer{of: from.Controller} // a reading is requested
	old, err := h.follow(t.Context(), key, from)      // the reader's, in flight
	if err != nil {
		t.Fatal(err)
	}
	h.Owners.client = newHousehold(t, rayJob("gpus", nil)).Owners.client // the owner got a queue
	queue, err := h.Read(t.Context(), key, from, time.Time{})            // before a patch
	if err != nil || !queue.Queued() {
		t.Fatal(queue, err)
	}
	// what read() does with the answer of the older reading
	h.mu.Lock()
	if h.answers[key].of == from.Controller {
		h.remember(key, old)
	}
	h.mu.Unlock()
	c := nodepool.Cluster{Key: key}
	h.AddTo(&c, from)
	if !c.Queue.Queued() {
		t.Error("the queue that was read before the patch is forgotten: an older reading replaced it for ten minutes")
	}
}

func TestReadingsOfOwnersDoNotPileUpWhileTheAPIServerHangs(t *testing.T) {
	h := newHousehold(t, rayJob("research", nil))
	now := time.Now()
	h.Owners.now = func() time.Time { return now }
	for range ownerReaders { // as readings that get no answer
		h.places <- struct{}{}
	}
	from := decode.DecodeObject(templatedCluster(t, byTrain))
	before := goruntime.NumGoroutine()
	for range 10 {
		h.AddTo(&from.Cluster, from.Ownership)
		now = now.Add(failurePause)
	}
	if n := goruntime.NumGoroutine() - before; n > 1 {
		t.Errorf("%d readings of one RayCluster's owners wait", n)
	}
}
