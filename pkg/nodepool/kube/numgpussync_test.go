package kube

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
{"op":"replace","path":"/spec/workerGroupSpecs/2/rayStartParams/num-gpus","value":"1"},
{"op":"add","path":"/spec/workerGroupSpecs/3/resources/GPU","value":"7"},
{"op":"replace","path":"/spec/workerGroupSpecs/4/resources/nvidia.com~1gpu","value":"1"}]`
	got, err := numGPUsPatch(objectOf(t, syncedGroups), nodepool.NumGPUsChange{UID: "u-1", Generation: 7, Targets: []nodepool.NumGPUsTarget{
		syncOf(0, "bare", "rayStartParams.num-gpus", 1), syncOf(1, "params", "rayStartParams.num-gpus", 3),
		syncOf(2, "declared", "rayStartParams.num-gpus", 1), syncOf(3, "field", "resources.GPU", 7), syncOf(4, "odd", "resources.nvidia.com/gpu", 1),
	}})
	if err != nil {
		t.Fatal(err)
	}
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
