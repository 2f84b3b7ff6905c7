package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodes"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// shown is a cache with one RayCluster.
type shown struct{ object *unstructured.Unstructured }

func (s shown) rayCluster(nodepool.ClusterKey) (*unstructured.Unstructured, error) {
	return s.object, nil
}

func (s shown) list(string) ([]*unstructured.Unstructured, error) {
	return []*unstructured.Unstructured{s.object}, nil
}

// apiServer answers each PATCH with the status patched, if it has one, else with what the patch makes of the object
// stored and a webhook of that, and a GET with the object stored.
type apiServer struct {
	stored   map[string]any
	patched  metav1.Status
	requests []*http.Request
	answered func() // runs after each answer to a PATCH
	webhook  func(*unstructured.Unstructured)
}

func (s *apiServer) RoundTrip(request *http.Request) (*http.Response, error) {
	s.requests = append(s.requests, request)
	var body any = s.stored
	code := http.StatusOK
	switch {
	case request.Method != http.MethodPatch:
	case s.patched.Code != 0:
		body, code = s.patched, int(s.patched.Code)
	default:
		object := s.after(request)
		if s.webhook != nil {
			s.webhook(object)
		}
		body = object.Object
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if request.Method == http.MethodPatch && s.answered != nil {
		s.answered()
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)), Request: request,
	}, nil
}

// after returns what a patch makes of the object stored: nothing, if one of its tests fails.
func (s *apiServer) after(request *http.Request) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	text, err := json.Marshal(s.stored)
	if err != nil {
		return object
	}
	body, _ := request.GetBody()
	patch, _ := io.ReadAll(body)
	made, err := jsonpatch.MergePatch(text, patch)
	if request.Header.Get("Content-Type") == string(types.JSONPatchType) {
		var steps jsonpatch.Patch
		if steps, err = jsonpatch.DecodePatch(patch); err == nil {
			made, err = steps.Apply(text)
		}
	}
	if err != nil {
		made = text
	}
	_ = object.UnmarshalJSON(made) // one that cannot be read fails the test that looks at it
	return object
}

// rayClusterOf is two groups as stored under a resource version.
func rayClusterOf(t *testing.T, manifest, version string) map[string]any {
	t.Helper()
	object := objectOf(t, manifest)
	object["apiVersion"], object["kind"] = "ray.io/v1", "RayCluster"
	metadata := object["metadata"].(map[string]any)
	metadata["namespace"], metadata["name"], metadata["resourceVersion"] = llm.Namespace, llm.Name, version
	return object
}

// dynamicOf is a client of server.
func dynamicOf(t *testing.T, server *apiServer) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://api.invalid", Transport: server})
	must(t, err)
	return client
}

// managerOf writes to server what it decides from cached.
func managerOf(t *testing.T, server *apiServer, cached map[string]any) *Manager {
	t.Helper()
	client := dynamicOf(t, server)
	m := &Manager{
		source: shown{&unstructured.Unstructured{Object: cached}}, rayClusters: client.Resource(rayClusterResource), userClusters: client.Resource(rayClusterResource),
		pool: newPool(func(nodepool.ClusterKey) bool { return true }, slog.New(slog.DiscardHandler)),
		pods: newRayPods(nil, attached.Config{}, nil, nil), storage: &storageGuard{proof: make(chan error, 1)},
		newestSeen: newNewestObjects(), decodes: newDecodeCache(sharing.Reader{}),
	}
	m.running.Store(true)
	return m
}

var oneMore = nodepool.Change{Cluster: llm, UID: "u-1", Targets: []nodepool.Target{{Group: "cpu", Index: 0, From: 2, Replicas: 3}}}

// A failed test and a refusal are both 422 Invalid.
func TestARefusedChangeIsNoConflict(t *testing.T) {
	invalid := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "denied by policy few-workers",
	}
	tests := []struct {
		name     string
		stored   string
		conflict bool
	}{
		{"all that was tested still holds", twoGroups, false},
		{"another writer's replicas", strings.Replace(twoGroups, "replicas: 2", "replicas: 4", 1), true},
		{"a lowered maximum", strings.Replace(twoGroups, "maxReplicas: 5", "maxReplicas: 1", 1), true},
		{"frozen", strings.Replace(twoGroups, "heliostat.dev/mode", "heliostat.dev/freeze: 'true', heliostat.dev/mode", 1), true},
		{"queued", strings.Replace(twoGroups, "generation: 7", "generation: 7, labels: {kueue.x-k8s.io/queue-name: research}", 1), true},
		{"adopted", strings.Replace(twoGroups, "generation: 7", "generation: 7, ownerReferences: [{kind: RayJob, name: j, controller: true}]", 1), true},
		{"made anew", strings.Replace(twoGroups, "u-1", "u-2", 1), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := &apiServer{stored: rayClusterOf(t, test.stored, "9"), patched: invalid}
			m := managerOf(t, server, rayClusterOf(t, twoGroups, "8"))
			_, err := m.Apply(t.Context(), oneMore)
			if err == nil || !strings.Contains(err.Error(), "few-workers") || errors.Is(err, nodepool.ErrConflict) != test.conflict {
				t.Errorf("error is %v, want the server's words and conflict %v", err, test.conflict)
			}
			if newest, err := m.newest(llm); err != nil || newest.GetResourceVersion() != "9" {
				t.Errorf("newest is %v, %v; want the one that was just read", newest, err)
			}
		})
	}
}

// A webhook may store other numbers than were written. The patch counts as failed, so that it is not written again and
// again, as if it had no effect by chance.
func TestAChangeThatAWebhookAltersFails(t *testing.T) {
	change := nodepool.Change{Cluster: llm, UID: "u-1", Generation: 7, Targets: []nodepool.Target{
		{Group: "cpu", Index: 0, From: 2, Replicas: 1, WorkersToDelete: []string{"w-1"}}}}
	for says, alter := range map[string]func(group map[string]any){
		"":                         func(map[string]any) {},
		"2 replicas instead of 1":  func(group map[string]any) { group["replicas"] = int64(2) },
		"without the names of w-1": func(group map[string]any) { delete(group, "scaleStrategy") },
	} {
		server := &apiServer{stored: rayClusterOf(t, twoGroups, "9")}
		server.webhook = func(object *unstructured.Unstructured) {
			groups, _, err := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
			must(t, err)
			alter(groups[0].(map[string]any))
			must(t, unstructured.SetNestedSlice(object.Object, groups, "spec", "workerGroupSpecs"))
		}
		m := managerOf(t, server, rayClusterOf(t, twoGroups, "9"))
		_, err := m.Apply(t.Context(), change)
		if says == "" && err != nil || says != "" && (err == nil || errors.Is(err, nodepool.ErrConflict) ||
			!strings.Contains(err.Error(), says)) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// A webhook removes annotations that it does not know: nobody may be told that the RayCluster is frozen.
func TestAnAnnotationThatAWebhookAltersIsNotWritten(t *testing.T) {
	kept := `{"gpus":1,"group":"gpu"}`
	server := &apiServer{stored: rayClusterOf(t, strings.Replace(twoGroups, "heliostat.dev/mode", "heliostat.dev/give-back: '"+kept+"', heliostat.dev/mode", 1), "9")}
	m := managerOf(t, server, server.stored)
	for webhook, writes := range map[string]func() error{
		"freeze":    func() error { return m.SetFreeze(t.Context(), llm, true) },
		"mode":      func() error { return m.SetMode(t.Context(), llm, nodepool.Shadow) },
		"give-back": func() error { return m.EndGiveBack(t.Context(), nodepool.Cluster{Key: llm}) },
	} {
		server.webhook = nil
		must(t, writes())
		server.webhook = func(object *unstructured.Unstructured) {
			object.SetAnnotations(map[string]string{"heliostat.dev/mode": "managed", "heliostat.dev/give-back": kept})
		}
		if err := writes(); !errors.Is(err, nodepool.ErrDenied) || !strings.Contains(err.Error(), "heliostat.dev/"+webhook) {
			t.Errorf("%s: %v, want an error that names the annotation", webhook, err)
		}
	}
}

// Leadership is asked for before the write is sent, and the API server may take seconds to carry it out.
func TestAWriteEndsWithTheRightToWrite(t *testing.T) {
	renewed := time.Unix(1_700_000_000, 0)
	tests := []struct {
		name  string
		lease *lease
		most  time.Duration
	}{
		{"renewed three seconds ago", leaseOf(renewed, 3*time.Second), renewDeadline - 3*time.Second},
		{"renewed just now", leaseOf(renewed, 0), renewDeadline},
		{"without leader election", nil, reflector.RequestTimeout},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := &apiServer{stored: rayClusterOf(t, twoGroups, "9")}
			m := managerOf(t, server, rayClusterOf(t, twoGroups, "8"))
			m.lease = test.lease
			before := time.Now()
			if _, err := m.Apply(t.Context(), oneMore); err != nil {
				t.Fatal(err)
			}
			after := time.Now()
			if len(server.requests) != 1 {
				t.Fatalf("%d requests, want one", len(server.requests))
			}
			deadline, set := server.requests[0].Context().Deadline()
			if !set || deadline.Before(before.Add(test.most)) || deadline.After(after.Add(test.most)) {
				t.Errorf("deadline in %v, want %v", deadline.Sub(before), test.most)
			}
		})
	}
}

func leaseOf(renewed time.Time, age time.Duration) *lease {
	return &lease{renewed: renewed, now: func() time.Time { return renewed.Add(age) }}
}

func TestWhoOnlyReadsWritesNothingWhoeverAsks(t *testing.T) {
	server := &apiServer{stored: rayClusterOf(t, twoGroups, "9")}
	m := managerOf(t, server, server.stored)
	m.options.ReadOnly = true
	may := func(*nodepool.OwnedRequest) error { return nil }
	requests := m.OwnedRequests()
	for what, write := range map[string]func() error{
		"a target": func() error { _, err := m.Apply(t.Context(), oneMore); return err },
		"num-gpus": func() error {
			server.stored = rayClusterOf(t, synced, "9")
			_, err := m.SyncNumGPUs(t.Context(), oneGPU)
			return err
		},
		"a freeze":        func() error { return m.SetFreeze(t.Context(), llm, true) },
		"a mode":          func() error { return m.SetMode(t.Context(), llm, nodepool.Managed) },
		"a plain request": func() error { return m.SetResourceRequests(t.Context(), llm, nil, time.Time{}) },
		"a request": func() error {
			_, _, err := requests.Put(t.Context(), nodepool.OwnedRequest{Cluster: llm}, may)
			return err
		},
		"a request that ends": func() error { return requests.Delete(t.Context(), llm, "a", may) },
	} {
		if err := write(); !errors.Is(err, nodepool.ErrReadOnly) || !strings.Contains(err.Error(), "--read-only") {
			t.Errorf("%s: answered %v", what, err)
		}
	}
	for _, method := range server.methods() {
		if method != http.MethodGet {
			t.Errorf("the API server was sent a %s", method)
		}
	}
}

func TestAModeIsSetByTheAnnotationAlone(t *testing.T) {
	server := &apiServer{stored: rayClusterOf(t, twoGroups, "9")}
	m := managerOf(t, server, server.stored)
	for _, mode := range []nodepool.Mode{nodepool.Managed, nodepool.Shadow} {
		must(t, m.SetMode(t.Context(), llm, mode))
		last := server.requests[len(server.requests)-1]
		body, err := last.GetBody()
		must(t, err)
		text, err := io.ReadAll(body)
		want := `{"metadata":{"annotations":{"heliostat.dev/mode":"` + string(mode) + `"}}}`
		if err != nil || last.Method != http.MethodPatch || string(text) != want {
			t.Errorf("%v; %s %s, want a patch %s", err, last.Method, text, want)
		}
	}
}

// What was taken is written with the reservation, so that no restart between two writes resets the budget. A give-back by
// hand is no taking.
func TestATakingIsWrittenWithItsReservation(t *testing.T) {
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for taker, want := range map[string]any{"ml/high": "2026-05-01T11:30:00Z 4, 2026-05-01T12:00:00Z 2", "": nil} {
		server := &apiServer{stored: rayClusterOf(t, twoGroups, "9")}
		m := managerOf(t, server, server.stored)
		r := &giveback.Reservation{Ask: giveback.Ask{GPUs: 2, Group: "gpu", DeadlineSeconds: 600, Taker: taker}, Deadline: began.Add(10 * time.Minute)}
		err := m.BeginGiveBack(t.Context(), nodepool.Cluster{Key: llm, UID: "u", ResourceVersion: "9", Reclaimed: []giveback.Taking{
			{At: began.Add(-2 * time.Hour), GPUs: 8}, {At: began.Add(-30 * time.Minute), GPUs: 4}}}, r)
		must(t, err)
		body, err := server.requests[len(server.requests)-1].GetBody()
		must(t, err)
		var patch struct {
			Metadata struct {
				UID, ResourceVersion string
				Annotations          map[string]any
			}
		}
		must(t, json.NewDecoder(body).Decode(&patch))
		got := patch.Metadata
		if got.UID != "u" || got.ResourceVersion != "9" || got.Annotations["heliostat.dev/reclaimed"] != want ||
			!strings.Contains(fmt.Sprint(got.Annotations["heliostat.dev/give-back"]), `"gpus":2`) {
			t.Errorf("taker %q: %+v, want %v", taker, got, want)
		}
	}
}

// Another reservation may have followed the one that is over; a user ends whatever is there.
func TestAReservationThatIsOverIsEndedInTheVersionThatHasIt(t *testing.T) {
	annotations := `"annotations":{"heliostat.dev/give-back":null}`
	for want, of := range map[string]nodepool.Cluster{
		`{"metadata":{` + annotations + `}}`:                                   {Key: llm},
		`{"metadata":{` + annotations + `,"resourceVersion":"9","uid":"u-1"}}`: {Key: llm, UID: "u-1", ResourceVersion: "9"},
	} {
		server := &apiServer{stored: rayClusterOf(t, twoGroups, "9")}
		m := managerOf(t, server, server.stored)
		must(t, m.EndGiveBack(t.Context(), of))
		body, err := server.requests[len(server.requests)-1].GetBody()
		must(t, err)
		if text, err := io.ReadAll(body); err != nil || string(text) != want {
			t.Errorf("%s, %v; want %s", text, err, want)
		}
	}
}

// TestNothingIsKeptOfAGoneRayCluster has a cycle that was reading the RayCluster when it was deleted, and remembered it
// after the deletion.
func TestNothingIsKeptOfAGoneRayCluster(t *testing.T) {
	m := managerOf(t, &apiServer{}, rayClusterOf(t, twoGroups, "10"))
	if _, err := m.Cluster(t.Context(), llm); err != nil || len(m.decodes.byKey) != 1 {
		t.Fatalf("%v, %d decoded objects", err, len(m.decodes.byKey))
	}
	m.source = shown{}
	if _, err := m.Cluster(t.Context(), llm); !errors.Is(err, nodepool.ErrGone) || len(m.decodes.byKey) != 0 {
		t.Errorf("%v, and %d decoded objects are kept", err, len(m.decodes.byKey))
	}
}

func TestARefusalOfKubernetesIsDistinguishedFromAnInternalError(t *testing.T) {
	forbidden := apierrors.NewForbidden(rayClusterResource.GroupResource(), "llm", errors.New("cannot patch"))
	if err := classified(forbidden); !errors.Is(err, nodepool.ErrDenied) || !apierrors.IsForbidden(err) {
		t.Errorf("%v", err)
	}
}

func TestASidecarKnowsSlicesByTheTemplateAloneAndSaysSoOnce(t *testing.T) {
	groups := func(resources ...string) []nodepool.WorkerGroup {
		var list []nodepool.WorkerGroup
		for _, resource := range resources {
			list = append(list, nodepool.WorkerGroup{Name: resource, Pod: landing.PodShape{Requests: landing.Quantities{resource: raydemand.One}}})
		}
		return list
	}
	shares := sharing.Reader{Names: gpuinfo.Names{Configured: []gpuinfo.Resource{{Name: "example.com/share", Kind: gpuinfo.TimeSliced, Role: gpuinfo.Devices}}}}
	m := &Manager{options: Options{Single: &llm, GPUs: shares}}
	cluster := nodepool.Cluster{Key: llm, Groups: groups("nvidia.com/mig-1g.10gb", "example.com/share", "cpu")}
	m.withoutNodes(&cluster)
	var kinds []gpuinfo.Kind
	for _, group := range cluster.Groups {
		for _, slice := range group.Slices {
			kinds = append(kinds, slice.Kind)
		}
		if group.PoolPods != nil {
			t.Errorf("group %s is bounded by pools %+v", group.Name, group.PoolPods)
		}
	}
	if diff := cmp.Diff([]gpuinfo.Kind{gpuinfo.MIG, gpuinfo.TimeSliced}, kinds); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
	if len(cluster.Findings) != 1 || cluster.Findings[0].Code != nodes.NodesForbidden {
		t.Errorf("findings %+v, want one %s", cluster.Findings, nodes.NodesForbidden)
	}
	cpus := nodepool.Cluster{Key: llm, Groups: groups("cpu")}
	if m.withoutNodes(&cpus); len(cpus.Findings) != 0 {
		t.Errorf("findings %+v for a cluster without GPUs", cpus.Findings)
	}
}

func TestConfiguredNamesAreReadInSpecs(t *testing.T) {
	reader := sharing.Reader{PoolLabel: "example.com/pool",
		Names: gpuinfo.Names{Configured: []gpuinfo.Resource{{Name: "example.com/vgpu", Kind: gpuinfo.MPS, Role: gpuinfo.Devices}}}}
	const group = `
metadata: {name: llm, namespace: ml, uid: u, resourceVersion: "1"}
spec: {workerGroupSpecs: [{groupName: g, template: {spec: {containers: [{name: ray, resources: {limits: {example.com/vgpu: 1}}}]}}}]}`
	manifest := &unstructured.Unstructured{Object: objectOf(t, group)}
	for _, known := range []bool{false, true} {
		cache := newDecodeCache(sharing.Reader{})
		if known {
			cache = newDecodeCache(reader)
		}
		unknown := false
		for _, f := range cache.decode(manifest).Findings {
			unknown = unknown || f.Code == landing.GPUResourceUnknown
		}
		if unknown == known {
			t.Errorf("a resource is unknown %t where it is configured %t", unknown, known)
		}
	}
}

const refusedCluster = `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: llm, namespace: ml, uid: u, resourceVersion: "7", generation: 2}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: h, image: i, env: [{name: RAY_REDIS_ADDRESS, value: redis}]}]}}}
  workerGroupSpecs: [{groupName: g, maxReplicas: 4, template: {spec: {containers: [{name: w, image: i}]}}}]
status: {observedGeneration: 0}
`

func clusterOf(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	must(t, yaml.Unmarshal([]byte(text), &object))
	return &unstructured.Unstructured{Object: object}
}

// The operator stops working on a RayCluster that it refuses, so nothing is planned for it. What it has accepted counts,
// whatever the rules of version 1.6.2 say.
func TestARayClusterThatTheOperatorRefusesIsMarked(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		refused bool
	}{
		"refused":                       {refusedCluster, true},
		"accepted":                      {strings.Replace(refusedCluster, "observedGeneration: 0", "observedGeneration: 2", 1), false},
		"before somebody's last change": {strings.Replace(refusedCluster, "observedGeneration: 0", "observedGeneration: 1", 1), true},
		"without fault":                 {strings.Replace(refusedCluster, "RAY_REDIS_ADDRESS", "A", 1), false},
		"a group without containers":    {strings.Replace(refusedCluster, "{name: w, image: i}", "", 1), true},
		"a long name":                   {strings.Replace(refusedCluster, "name: llm", "name: "+strings.Repeat("a", 60), 1), true},
	} {
		read := newDecodeCache(sharing.Reader{}).decode(clusterOf(t, c.text))
		said := false
		for _, f := range read.Findings {
			said = said || f.Code == nodepool.SpecRefused
		}
		if read.Cluster.Refused != c.refused || said != c.refused {
			t.Errorf("%s: refused %v, findings %v", name, read.Cluster.Refused, read.Findings)
		}
	}
}

// An operator that has accepted what version 1.6.2 refuses observes each patch of ours a little later.
func TestWhatTheOperatorHasAcceptedIsNotRefusedAfterAPatch(t *testing.T) {
	m := newDecodeCache(sharing.Reader{})
	for _, step := range []struct {
		replace []string
		refused bool
	}{
		{[]string{"Generation: 0", "Generation: 2"}, false},
		{[]string{"Generation: 0", "Generation: 2", "generation: 2}", "generation: 3}", `"7"`, `"8"`}, false},
		{[]string{"Generation: 0", "Generation: 2", "generation: 2}", "generation: 4}", `"7"`, `"9"`,
			"{template: {spec: {containers: [{name: h", "{resources: {CPU: \"1\"}, rayStartParams: {num-cpus: \"4\"}, template: {spec: {containers: [{name: h"}, true},
	} {
		object := clusterOf(t, strings.NewReplacer(step.replace...).Replace(refusedCluster))
		if read := m.decode(object); read.Cluster.Refused != step.refused {
			t.Errorf("%v: refused %v, findings %v", step.replace, read.Cluster.Refused, read.Findings)
		}
	}
}

func TestARefusalNamesThePartOfTheSpec(t *testing.T) {
	var groups []nodepool.WorkerGroup
	for _, name := range []string{"worker", "group", "gpu", "use", "only"} {
		groups = append(groups, nodepool.WorkerGroup{Name: name})
	}
	for says, want := range map[string]string{
		"worker group gpu cannot be suspended with Autoscaler enabled":                                                      "spec.workerGroupSpecs[2]",
		"worker group gpu: idleTimeoutSeconds must be non-negative, got -1":                                                 "spec.workerGroupSpecs[2]",
		"resource fields should not be set in both rayStartParams and Resources for gpu group; please use only one":         "spec.workerGroupSpecs[2]",
		"resource fields should not be set in both rayStartParams and Resources for Head group; please use only one":        "spec.headGroupSpec",
		"restartPolicy for head Pod should be Never or unset when using autoscaler V2":                                      "spec.headGroupSpec",
		"both .spec.autoscalerOptions.version and head Pod env var A are set, please only use the former":                   "spec.headGroupSpec",
		"autoscalerOptions.idleTimeoutSeconds must be non-negative, got -1":                                                 "spec",
		"restartPolicy for worker group worker should be Never or unset when using autoscaler V2":                           "spec.workerGroupSpecs[0]",
		"invalid label value for key 'a' in group group: '_', error: a valid label must be an empty string or consist of b": "spec.workerGroupSpecs[1]",
	} {
		if got := refusedField(says, groups); got != want {
			t.Errorf("%s: %s, want %s", says, got, want)
		}
	}
}
