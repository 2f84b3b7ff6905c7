package dra

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
)

func TestADeviceThatARuleTaintsHasNoRoom(t *testing.T) {
	const taint = `taint: {key: gpu.example.com/broken, effect: `
	for name, test := range map[string]struct {
		rule string
		well int64
	}{
		"one device":               {`deviceSelector: {driver: gpu.example.com, pool: n1, device: gpu-1}, ` + taint + `NoSchedule}`, 2},
		"all devices of a pool":    {`deviceSelector: {pool: n1}, ` + taint + `NoExecute}`, 0},
		"an empty selector is all": {`deviceSelector: {}, ` + taint + `NoSchedule}`, 0},
		"no selector is none":      {taint + `NoSchedule}`, 3},
		"another driver":           {`deviceSelector: {driver: nic.example.com, device: gpu-1}, ` + taint + `NoSchedule}`, 3},
		"another pool":             {`deviceSelector: {pool: n2, device: gpu-1}, ` + taint + `NoSchedule}`, 3},
		"an effect that only says": {`deviceSelector: {device: gpu-1}, ` + taint + `None}`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var o Objects
			o.PutClass(read[resourcev1.DeviceClass](t, gpuClass))
			o.PutSlice(read[resourcev1.ResourceSlice](t, cards("a100", "a100", "a100")))
			rule := read[resourcev1alpha3.DeviceTaintRule](t, `{metadata: {name: r}, spec: {`+test.rule+`}}`)
			check := func(when string, well int64) {
				t.Helper()
				nodes, _ := o.ByNode()
				if got := nodes["n1"].Units["nvidia.com/gpu"]; got.All != 3 || got.Well != well {
					t.Errorf("%s: %+v, want %d of 3 without a taint", when, got, well)
				}
			}
			check("before the rule", 3)
			o.PutRule(rule)
			check("with the rule", test.well)
			if o.PutRule(rule) {
				t.Error("the same rule again changes something")
			}
			o.PutSlice(read[resourcev1.ResourceSlice](t, cards("h100", "h100", "h100")))
			check("a slice that comes later", test.well)
			if changed := o.DropRule("r"); changed != (test.well < 3 || name == "an effect that only says") {
				t.Errorf("without the rule, changed is %v", changed)
			}
			check("without the rule", 3)
		})
	}
}
