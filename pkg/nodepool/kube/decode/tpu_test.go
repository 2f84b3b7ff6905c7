package decode

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTheTypeOfATPUSliceFollowsFromItsNodeSelectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/group-shape/shape-tpu-type-from-selectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		TPUTypes []struct{ Accelerator, Topology, Type string }
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.TPUTypes) == 0 {
		t.Fatal("the case has no types")
	}
	sliceOf := func(accelerator, topology string) string {
		return landing.TPUPodTypeOf(map[string]string{
			"cloud.google.com/gke-tpu-accelerator": accelerator, "cloud.google.com/gke-tpu-topology": topology,
		})
	}
	for _, want := range c.TPUTypes {
		if got := sliceOf(want.Accelerator, want.Topology); got != want.Type {
			t.Errorf("%s of %s is %q, want %q", want.Accelerator, want.Topology, got, want.Type)
		}
	}
	for _, topology := range []string{"2x", "x", "-1x2", "2x99999999999999999999", "2by2"} {
		if got := sliceOf("tpu-v4-podslice", topology); got != "" {
			t.Errorf("topology %q gives %q", topology, got)
		}
	}
}

func TestAGroupOfTPUsBringsTheResourceByWhichItsSliceIsTaken(t *testing.T) {
	const template = `
template:
  spec:
    nodeSelector: {cloud.google.com/gke-tpu-topology: %s, cloud.google.com/gke-tpu-accelerator: tpu-v6e-slice}
    containers: [{name: ray, resources: {limits: {cpu: "1", google.com/tpu: "4"}}}]
`
	group := FieldsOf(objectOf(t, fmt.Sprintf(template, "4x4")), nil)
	if got := effectiveResources(group, false); got["TPU-v6e-16-head"] != raydemand.One || got["TPU"] != raydemand.Whole(4) {
		t.Errorf("resources %v, want four TPUs and the head of a v6e-16", got)
	}
	group = FieldsOf(objectOf(t, fmt.Sprintf(template, "any")), nil)
	for name := range effectiveResources(group, false) {
		if name != "CPU" && name != "TPU" {
			t.Errorf("announces %s for a topology that nobody can read", name)
		}
	}
}
