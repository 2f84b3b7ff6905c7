package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/doctor"
)

// policied returns the RayCluster of a manifest with an annotation, and further objects.
func policied(t *testing.T, annotation string, more string) []map[string]any {
	t.Helper()
	all := objects(t, "testdata/clean/capacity-policy-unreadable.yaml")[:1]
	if annotation != "" {
		all[0]["metadata"].(map[string]any)["annotations"] = map[string]any{"heliostat.dev/capacity-policy": annotation}
	}
	others := parsed(t, more)
	return append(all, others...)
}

func codesAt(found []doctor.Finding) (all []string) {
	for _, f := range found {
		all = append(all, f.Code+" "+f.Object+" "+f.Field)
	}
	return all
}

func TestTheAnnotationIsExamined(t *testing.T) {
	found := examine(t, policied(t, `{"keepWarm": [{"group": "a10", "count": 1}, {"group": "a100", "count": 1}]}`, ""))
	const want = `warm-group-unknown RayCluster/ml/llm metadata.annotations["heliostat.dev/capacity-policy"]: keepWarm[0].group`
	if got := codesAt(found); !slices.Equal(got, []string{want}) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestACapacityPolicyBecomesAnAnnotation(t *testing.T) {
	found := examine(t, policied(t, "", `
apiVersion: heliostat.dev/v1alpha1
kind: CapacityPolicy
metadata: {name: office, namespace: ml}
spec: {rayCluster: llm, keepWarm: [{group: a100, count: 1}]}
`))
	const want = `kubectl annotate raycluster llm -n ml 'heliostat.dev/capacity-policy={"keepWarm":[{"count":1,"group":"a100"}]}'`
	if got := codesAt(found); len(got) != 1 || got[0] != "capacity-policy-unreadable CapacityPolicy/ml/office spec" || found[0].Fix != want {
		t.Errorf("found %+v, want %s", found, want)
	}
}

func TestAFieldInsideTheAnnotationIsBehindItsBracket(t *testing.T) {
	found := examine(t, policied(t, `{"keepWarm": [{"group": "a10", "count": "one"}]}`, ""))
	const want = `annotation-unreadable RayCluster/ml/llm metadata.annotations["heliostat.dev/capacity-policy"]: keepWarm[0].count`
	if got := codesAt(found); !slices.Equal(got, []string{want}) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestWarmNodesAreComparedWithASwitchThatIsKnown(t *testing.T) {
	const nodes, deployment = `{"keepWarmNodes": [{"group": "a100", "count": 1}]}`, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: heliostat, namespace: heliostat}
spec: {template: {spec: {containers: [{name: heliostat, image: x/heliostat:1, args: [ARGS]}]}}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: heliostat-nodes-1, namespace: ml, labels: {app.kubernetes.io/managed-by: heliostat}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: theirs, namespace: ml}
`
	for args, want := range map[string][]string{
		"serve": {"warm-nodes-left CapacityBuffer/ml/heliostat-nodes-1"},
		"serve], env: [{name: HELIOSTAT_WARM_NODES, value: 'true'}":  nil,
		"serve], env: [{name: HELIOSTAT_WARM_NODES, value: 'false'}": {"warm-nodes-left CapacityBuffer/ml/heliostat-nodes-1"},
		"serve, --warm-nodes=false":                                  {"warm-nodes-left CapacityBuffer/ml/heliostat-nodes-1"},
		"serve, --warm-nodes":                                        nil,
		"serve, --config=/etc/x.yaml":                                nil,
	} {
		var got []string
		for _, f := range examine(t, policied(t, nodes, strings.Replace(deployment, "ARGS", args, 1))) {
			got = append(got, f.Code+" "+f.Object)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", args, got, want)
		}
	}
}

func TestARequestThatCannotBeReadIsReported(t *testing.T) {
	request := `
apiVersion: heliostat.dev/v1alpha1
kind: ResourceRequest
metadata: {name: held, namespace: ml}
spec: {rayCluster: llm, owner: ann, leaseSeconds: 60, bundles: [{resources: {}}]}
`
	found := examine(t, policied(t, "", request))
	if len(found) != 1 || found[0].Code != "object-unreadable" || found[0].Severity != "error" || !strings.HasPrefix(found[0].Seen, "spec.bundles[0]: ") {
		t.Errorf("found %+v", found)
	}
}

func TestARequestWithoutBundlesIsAFault(t *testing.T) {
	found := examine(t, policied(t, "", `
apiVersion: heliostat.dev/v1alpha1
kind: ResourceRequest
metadata: {name: held, namespace: ml}
spec: {rayCluster: llm, owner: ann, leaseSeconds: 60, bundels: [{resources: {GPU: 1}}]}
`))
	if len(found) != 1 || found[0].Code != "object-unreadable" || found[0].Seen != "spec.bundles: want at least one kind of bundle" {
		t.Errorf("found %+v", found)
	}
}

func TestAVersionThatHeliostatDoesNotServeIsReported(t *testing.T) {
	for kind, version := range map[string]string{"ResourceRequest": "heliostat.dev/v1", "CapacityPolicy": "5"} {
		object := "\napiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: held, namespace: ml}\nspec: {rayCluster: llm}\n"
		found := examine(t, policied(t, "", object))
		if len(found) != 1 || found[0].Code != "kind-unknown" || found[0].Seen != version ||
			!strings.HasSuffix(found[0].Why, "; want heliostat.dev/v1alpha1") {
			t.Errorf("%s: found %+v", kind, found)
		}
	}
}

func TestARequestForNoRayClusterIsAFault(t *testing.T) {
	found := strings.Join(codesAt(examine(t, policied(t, "", `
apiVersion: heliostat.dev/v1alpha1
kind: ResourceRequest
metadata: {name: r, namespace: ml}
spec: {owner: ann, holdUntilDeleted: true, bundles: [{resources: {GPU: 1}}]}
`))), "\n")
	if !strings.Contains(found, "ResourceRequest/ml/r") {
		t.Errorf("found %q", found)
	}
}

func TestAMissingRightIsAFinding(t *testing.T) {
	input := doctor.Input{Forbidden: []doctor.Forbidden{
		{Resource: "nodes", Message: `nodes is forbidden: User "system:serviceaccount:ray:autoscaler" cannot list resource "nodes" in API group "" at the cluster scope`},
		{Group: "ray.io", Resource: "rayjobs", Namespace: "ml", Message: `rayjobs.ray.io is forbidden: User "jane" cannot list resource "rayjobs"`},
	}}
	found := doctor.Examine(input)
	var fixes []string
	for _, f := range found {
		fixes = append(fixes, f.Code+": "+f.Fix)
		if f.Seen == "" || len(shellArguments(t, f.Fix)) < 3 {
			t.Errorf("got %+v", f)
		}
	}
	want := []string{
		"nodes-forbidden: kubectl create clusterrole heliostat-nodes --verb=get,list,watch --resource=nodes  # and bind it to the account",
		"list-forbidden: kubectl create clusterrole heliostat-rayjobs --verb=get,list,watch --resource=rayjobs.ray.io  # and bind it to the account",
	}
	if diff := cmp.Diff(want, fixes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found := doctor.Examine(doctor.Input{}); len(found) != 0 || found == nil {
		t.Errorf("of nothing: %v; want an empty list, which JSON writes as []", found)
	}
}

// The patch changes the RayCluster inside the RayService, RayJob or RayCronJob.
func TestTheSpecInsideAnotherKindIsExamined(t *testing.T) {
	for kind, field := range map[string]string{
		"RayService": "rayClusterConfig", "RayJob": "rayClusterSpec", "RayCronJob": "jobTemplate.rayClusterSpec",
	} {
		for _, code := range []string{"gpu-requests-only", "replicas-outside"} {
			cluster := objects(t, "testdata/shows/"+code+".yaml")[0]
			spec := cluster["spec"]
			path := strings.Split(field, ".")
			for i := range path {
				spec = map[string]any{path[len(path)-1-i]: spec}
			}
			if kind == "RayCronJob" {
				spec.(map[string]any)["schedule"] = "0 2 * * *"
			}
			all := []map[string]any{{
				"apiVersion": "ray.io/v1", "kind": kind, "metadata": cluster["metadata"], "spec": spec,
			}}
			found := examine(t, all)
			if len(found) == 0 || found[0].Code != code {
				t.Errorf("%s: %s: got %v", kind, code, codesOf(found))
				continue
			}
			f := found[0]
			if f.Object != kind+"/ml/llm" || !strings.HasPrefix(f.Field, "spec."+field+".workerGroupSpecs[0]") {
				t.Errorf("got %+v", f)
			}
			if !fixed(t, all, f) || slices.Contains(codesOf(examine(t, all)), code) {
				t.Errorf("%s leaves it", f.Fix)
			}
		}
	}
}
