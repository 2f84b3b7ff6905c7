package kube

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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

func TestAWriteOfNumGPUsEndsWithTheRightToWrite(t *testing.T) {
	server := &apiServer{stored: rayClusterOf(t, synced, "9")}
	m := managerOf(t, server, rayClusterOf(t, synced, "8"))
	m.lease = leaseOf(time.Unix(1_700_000_000, 0), 3*time.Second)
	before := time.Now()
	if _, err := m.SyncNumGPUs(t.Context(), oneGPU); err != nil {
		t.Fatal(err)
	}
	deadline, set := server.requests[1].Context().Deadline()
	if most := renewDeadline - 3*time.Second; !set || deadline.After(time.Now().Add(most)) || deadline.Before(before.Add(most)) {
		t.Errorf("deadline in %v, want %v", deadline.Sub(before), most)
	}
}
