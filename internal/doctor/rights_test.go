package doctor_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/doctor"
)

func TestAMissingRightIsAFindingWhoseFixGrantsIt(t *testing.T) {
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
		"nodes-forbidden: kubectl create clusterrole heliostat-nodes --verb=get,list,watch --resource=nodes && " +
			"kubectl create clusterrolebinding heliostat-nodes --clusterrole=heliostat-nodes --serviceaccount=ray:autoscaler",
		"list-forbidden: kubectl create role heliostat-rayjobs -n ml --verb=get,list --resource=rayjobs.ray.io && " +
			"kubectl create rolebinding heliostat-rayjobs -n ml --role=heliostat-rayjobs --user=jane",
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
		for _, code := range []string{"gpu-requests-only", "min-above-max", "spec-refused", "replicas-outside"} {
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
			for _, after := range examine(t, applied(t, all, f.Object, jsonPatch(shellArguments(t, f.Fix)))) {
				if after.Code == code {
					t.Errorf("%s leaves %+v", f.Fix, after)
				}
			}
		}
	}
}
