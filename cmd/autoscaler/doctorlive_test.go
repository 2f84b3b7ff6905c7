package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	kubetesting "k8s.io/client-go/testing"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// server returns an API server with the objects of a manifest.
func server(t *testing.T, manifest string) *fake.FakeDynamicClient {
	t.Helper()
	read, _, err := decode.ReadObjects(strings.NewReader(manifest))
	must(t, err)
	kinds := map[schema.GroupVersionResource]string{}
	for _, kind := range doctor.Kinds {
		kinds[resourceOf(kind)] = kind.Name + "List"
	}
	var objects []runtime.Object
	for _, fields := range read {
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
}

const llm = `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: llm, namespace: ml}
spec: {workerGroupSpecs: [{groupName: a, minReplicas: 3, maxReplicas: 1, template: {spec: {containers: [{name: ray}]}}}]}
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: embed, namespace: ml}
spec: {workerGroupSpecs: []}
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: llm, namespace: other}
spec: {workerGroupSpecs: []}
---
apiVersion: v1
kind: Node
metadata: {name: gpu-1}
---
apiVersion: v1
kind: Pod
metadata: {name: llm-head, namespace: ml, labels: {ray.io/cluster: llm}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-autoscaler-status, namespace: kube-system}
data: {status: "nodeGroups: []"}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: ray, namespace: ml}
spec: {maxUnavailable: 1, selector: {matchLabels: {ray.io/cluster: llm}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: other}
spec: {maxUnavailable: 1, selector: {}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec: {}
---
apiVersion: heliostat.dev/v1alpha1
kind: CapacityPolicy
metadata: {name: office, namespace: ml}
spec: {rayCluster: llm, keepWarm: [{group: b, count: 1}]}
---
apiVersion: heliostat.dev/v1alpha1
kind: ResourceRequest
metadata: {name: held, namespace: ml}
spec: {rayCluster: embed, owner: ann, bundles: [{resources: {GPU: 1}}]}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: ours, namespace: ml, labels: {app.kubernetes.io/managed-by: heliostat}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: theirs, namespace: ml}
`

func names(input doctor.Input) []string {
	var all []string
	for _, o := range input.Objects {
		all = append(all, o.String())
	}
	slices.Sort(all)
	return all
}

func TestLiveListsWithinTheScopeAndWritesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		scope doctorScope
		want  []string
	}{
		"everything": {doctorScope{}, []string{"CapacityBuffer/ml/ours", "CapacityPolicy/ml/office", "ConfigMap/kube-system/cluster-autoscaler-status", "Node/gpu-1", "NodePool/gpu", "Pod/ml/llm-head",
			"PodDisruptionBudget/ml/ray", "PodDisruptionBudget/other/web", "RayCluster/ml/embed", "RayCluster/ml/llm", "RayCluster/other/llm",
			"ResourceRequest/ml/held"}},
		"one RayCluster": {doctorScope{"ml", "llm"}, []string{"CapacityBuffer/ml/ours", "CapacityPolicy/ml/office", "ConfigMap/kube-system/cluster-autoscaler-status", "Node/gpu-1", "NodePool/gpu", "Pod/ml/llm-head",
			"PodDisruptionBudget/ml/ray", "RayCluster/ml/llm"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := server(t, llm)
			input, err := listObjects(context.Background(), client, c.scope, sharing.Reader{})
			must(t, err)
			if diff := cmp.Diff(c.want, names(input)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, action := range client.Actions() {
				if verb := action.GetVerb(); verb != "get" && verb != "list" {
					t.Errorf("it asks for %s of %s", verb, action.GetResource().Resource)
				}
			}
			found := doctor.Examine(input)
			if !slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Code == "min-above-max" && f.Object == "RayCluster/ml/llm" }) ||
				!slices.ContainsFunc(found, func(f doctor.Finding) bool {
					return f.Code == "capacity-policy-unreadable" && f.Object == "CapacityPolicy/ml/office"
				}) {
				t.Errorf("found %+v", found)
			}
		})
	}
}

func TestLiveReportsMissingRightsAndExaminesTheRest(t *testing.T) {
	client := server(t, llm)
	client.PrependReactor("list", "nodes", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New(`User "system:serviceaccount:ray:doctor" cannot list`))
	})
	client.PrependReactor("list", "capacitybuffers", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Group: "autoscaling.x-k8s.io", Resource: "capacitybuffers"}, "")
	})
	input, err := listObjects(context.Background(), client, doctorScope{Namespace: "ml"}, sharing.Reader{})
	must(t, err)
	if len(input.Forbidden) != 1 || input.Forbidden[0].Resource != "nodes" {
		t.Errorf("forbidden: %+v", input.Forbidden)
	}
	var codes []string
	for _, f := range doctor.Examine(input) {
		codes = append(codes, f.Code)
	}
	if !slices.Contains(codes, "nodes-forbidden") || !slices.Contains(codes, "min-above-max") {
		t.Errorf("found %v", codes)
	}
}

func TestLiveFailsWithoutTheRightToListRayClusters(t *testing.T) {
	client := server(t, llm)
	client.PrependReactor("list", "rayclusters", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "ray.io", Resource: "rayclusters"}, "", errors.New("no"))
	})
	if _, err := listObjects(context.Background(), client, doctorScope{}, sharing.Reader{}); err == nil || !strings.Contains(err.Error(), "listing rayclusters") {
		t.Errorf("got %v", err)
	}
}
