package kube

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const syncedGroups = `
metadata: {uid: u-1, generation: 7, resourceVersion: "41", annotations: {heliostat.dev/num-gpus-sync: enforce}}
spec:
  upgradeStrategy: {type: None}
  workerGroupSpecs:
  - {groupName: bare}
  - {groupName: params, rayStartParams: {block: "true"}}
  - {groupName: declared, rayStartParams: {num-gpus: "2"}}
  - {groupName: field, resources: {CPU: "4"}}
  - {groupName: odd, resources: {nvidia.com/gpu: "2"}}
`

func syncOf(index int, group, field string, gpus int64) nodepool.NumGPUsTarget {
	return nodepool.NumGPUsTarget{Index: index, Group: group, Field: field, GPUs: raydemand.Whole(gpus)}
}

func TestNumbersOfGPUsAreOneGuardedPatch(t *testing.T) {
	want := `[
{"op":"test","path":"/metadata/uid","value":"u-1"},
{"op":"test","path":"/metadata/deletionTimestamp","value":null},
{"op":"test","path":"/spec/suspend","value":null},
{"op":"test","path":"/metadata/labels","value":null},
{"op":"test","path":"/metadata/ownerReferences","value":null},
{"op":"test","path":"/metadata/annotations/heliostat.dev~1freeze","value":null},
{"op":"test","path":"/metadata/annotations/heliostat.dev~1mode","value":null},
{"op":"test","path":"/metadata/resourceVersion","value":"41"},
{"op":"test","path":"/metadata/generation","value":7},
{"op":"test","path":"/spec/upgradeStrategy","value":{"type":"None"}},
{"op":"test","path":"/spec/workerGroupSpecs/0/groupName","value":"bare"},
{"op":"test","path":"/spec/workerGroupSpecs/0/rayStartParams","value":null},
{"op":"test","path":"/spec/workerGroupSpecs/0/resources","value":null},
{"op":"test","path":"/spec/workerGroupSpecs/1/groupName","value":"params"},
{"op":"test","path":"/spec/workerGroupSpecs/1/rayStartParams","value":{"block":"true"}},
{"op":"test","path":"/spec/workerGroupSpecs/1/resources","value":null},
{"op":"test","path":"/spec/workerGroupSpecs/2/groupName","value":"declared"},
{"op":"test","path":"/spec/workerGroupSpecs/2/rayStartParams","value":{"num-gpus":"2"}},
{"op":"test","path":"/spec/workerGroupSpecs/2/resources","value":null},
{"op":"test","path":"/spec/workerGroupSpecs/3/groupName","value":"field"},
{"op":"test","path":"/spec/workerGroupSpecs/3/rayStartParams","value":null},
{"op":"test","path":"/spec/workerGroupSpecs/3/resources","value":{"CPU":"4"}},
{"op":"test","path":"/spec/workerGroupSpecs/4/groupName","value":"odd"},
{"op":"test","path":"/spec/workerGroupSpecs/4/rayStartParams","value":null},
{"op":"test","path":"/spec/workerGroupSpecs/4/resources","value":{"nvidia.com/gpu":"2"}},
{"op":"add","path":"/spec/workerGroupSpecs/0/rayStartParams","value":{"num-gpus":"1"}},
{"op":"add","path":"/spec/workerGroupSpecs/1/rayStartParams/num-gpus","value":"3"},
{"op":"add","path":"/spec/workerGroupSpecs/2/rayStartParams/num-gpus","value":"1"},
{"op":"add","path":"/spec/workerGroupSpecs/3/resources/GPU","value":"7"},
{"op":"add","path":"/spec/workerGroupSpecs/4/resources/nvidia.com~1gpu","value":"1"}]`
	got, err := numGPUsPatch(objectOf(t, syncedGroups), nodepool.NumGPUsChange{UID: "u-1", Generation: 7, Targets: []nodepool.NumGPUsTarget{
		syncOf(0, "bare", "rayStartParams.num-gpus", 1), syncOf(1, "params", "rayStartParams.num-gpus", 3),
		syncOf(2, "declared", "rayStartParams.num-gpus", 1), syncOf(3, "field", "resources.GPU", 7), syncOf(4, "odd", "resources.nvidia.com/gpu", 1),
	}})
	must(t, err)
	if diff := cmp.Diff(strings.ReplaceAll(want, "\n", ""), string(got)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}

func TestNumbersForAnotherSpecAreAConflict(t *testing.T) {
	tests := map[string]nodepool.NumGPUsChange{
		"another uid":             {UID: "u-0", Generation: 7},
		"another generation":      {UID: "u-1", Generation: 6},
		"another index":           {UID: "u-1", Generation: 7, Targets: []nodepool.NumGPUsTarget{syncOf(1, "bare", "rayStartParams.num-gpus", 1)}},
		"an index too far":        {UID: "u-1", Generation: 7, Targets: []nodepool.NumGPUsTarget{syncOf(5, "bare", "rayStartParams.num-gpus", 1)}},
		"a negative index":        {UID: "u-1", Generation: 7, Targets: []nodepool.NumGPUsTarget{syncOf(-1, "bare", "rayStartParams.num-gpus", 1)}},
		"resources were added":    {UID: "u-1", Generation: 7, Targets: []nodepool.NumGPUsTarget{syncOf(3, "field", "rayStartParams.num-gpus", 1)}},
		"resources were taken":    {UID: "u-1", Generation: 7, Targets: []nodepool.NumGPUsTarget{syncOf(0, "bare", "resources.GPU", 1)}},
		"one of two does not fit": {UID: "u-1", Generation: 7, Targets: []nodepool.NumGPUsTarget{syncOf(0, "bare", "rayStartParams.num-gpus", 1), syncOf(1, "gone", "rayStartParams.num-gpus", 1)}},
	}
	for name, change := range tests {
		if _, err := numGPUsPatch(objectOf(t, syncedGroups), change); !errors.Is(err, nodepool.ErrConflict) {
			t.Errorf("%s: error is %v, want ErrConflict", name, err)
		}
	}
}

const synced = `
metadata: {uid: u-1, generation: 7}
spec: {headGroupSpec: {template: {spec: {containers: [{name: ray}]}}}, workerGroupSpecs: [{groupName: gpu, maxReplicas: 5, template: {spec: {containers: [{name: ray, resources: {limits: {nvidia.com/gpu.shared: 1}}}]}}}]}
`

var oneGPU = nodepool.NumGPUsChange{Cluster: llm, UID: "u-1", Generation: 7, Targets: []nodepool.NumGPUsTarget{
	{Group: "gpu", Field: "rayStartParams.num-gpus", GPUs: raydemand.One}}}

func (s *apiServer) methods() []string {
	var methods []string
	for _, request := range s.requests {
		methods = append(methods, request.Method)
	}
	return methods
}

// The object in the cache never decides: what forbids a write is looked for in the one that the API server has.
func TestNumGPUsAreWrittenToTheObjectAsItIsNow(t *testing.T) {
	tests := []struct {
		name, stored string
		deposed      bool
		want         error
		code         string
		methods      []string
	}{
		{name: "as it was read", stored: synced, methods: []string{"GET", "PATCH"}},
		{name: "another generation", stored: strings.Replace(synced, "generation: 7", "generation: 8", 1), want: nodepool.ErrConflict, methods: []string{"GET"}},
		{name: "frozen", stored: strings.Replace(synced, "generation: 7", "generation: 7, annotations: {heliostat.dev/freeze: 'true'}", 1), want: nodepool.ErrReadOnly, methods: []string{"GET"}},
		{name: "suspended", stored: strings.Replace(synced, "spec: {", "spec: {suspend: true, ", 1), want: nodepool.ErrReadOnly, methods: []string{"GET"}},
		{name: "another process leads", stored: synced, deposed: true, want: nodepool.ErrNotLeading, methods: []string{"GET"}},
		{name: "Recreate", stored: strings.Replace(synced, "spec: {", "spec: {upgradeStrategy: {type: Recreate}, ", 1), want: nodepool.ErrSyncRefused, code: nodepool.SyncRecreate, methods: []string{"GET"}},
		{name: "owned", stored: strings.Replace(synced, "generation: 7", "generation: 7, ownerReferences: [{kind: RayService, name: chat}]", 1),
			want: nodepool.ErrSyncRefused, code: nodepool.SyncOwned, methods: []string{"GET"}},
		{name: "applied", stored: strings.Replace(synced, "generation: 7", "generation: 7, managedFields: [{manager: argocd-controller, operation: Update, fieldsV1: {f:spec: {}}}]", 1),
			want: nodepool.ErrSyncRefused, code: nodepool.SyncFieldManaged, methods: []string{"GET"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := &apiServer{stored: rayClusterOf(t, test.stored, "9")}
			m := managerOf(t, server, rayClusterOf(t, synced, "8"))
			m.running.Store(!test.deposed)
			_, err := m.SyncNumGPUs(t.Context(), oneGPU)
			if !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
			var refusal *nodepool.SyncRefusal
			if errors.As(err, &refusal) != (test.code != "") || test.code != "" && refusal.Code != test.code {
				t.Errorf("refused as %v, want %q", refusal, test.code)
			}
			if diff := cmp.Diff(test.methods, server.methods()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// Both come back as 422. An object of another version failed a test; the very version that was tested was refused.
func TestARefusedNumberIsNoConflict(t *testing.T) {
	invalid := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "denied by policy no-gpus",
	}
	for name, again := range map[string]string{"refused": "9", "conflict": "10"} {
		server := &apiServer{stored: rayClusterOf(t, synced, "9"), patched: invalid}
		m := managerOf(t, server, rayClusterOf(t, synced, "8"))
		server.answered = func() { server.stored = rayClusterOf(t, synced, again) }
		_, err := m.SyncNumGPUs(t.Context(), oneGPU)
		if err == nil || !strings.Contains(err.Error(), "no-gpus") || errors.Is(err, nodepool.ErrConflict) != (name == "conflict") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}
