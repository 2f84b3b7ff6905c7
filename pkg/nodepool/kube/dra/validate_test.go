package dra

import (
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

func TestWhatTheAllocatorCannotTakeIsNamedAndNotKept(t *testing.T) {
	const request = `{metadata: {name: t, namespace: ml}, spec: {spec: {devices: {requests: [{name: gpu`
	for claim, want := range map[string]string{
		request + `, exactly: {deviceClassName: gpu.example.com, count: -3}}]}}}}`: "requests[0].exactly.count is -3: want 1 to 32",
		request + `, exactly: {deviceClassName: gpu.example.com, count: 33}}]}}}}`: "requests[0].exactly.count is 33: want 1 to 32",
		request + `}]}}}}`: "requests[0] has neither exactly nor firstAvailable",
		request + `, exactly: {deviceClassName: a}, firstAvailable: [{name: x, deviceClassName: a}]}]}}}}`: "requests[0] has exactly and firstAvailable",
		request + `, exactly: {deviceClassName: gpu.example.com, selectors: [{}]}}]}}}}`:                   "requests[0].exactly.selectors[0] has no cel",
		request + `, firstAvailable: [{name: x, deviceClassName: gpu.example.com, count: 40}]}]}}}}`:       "requests[0].firstAvailable[0].count is 40",
		request + `, firstAvailable: [{name: x, deviceClassName: gpu.example.com}]}]}}}}`:                  "",
		request + `, exactly: {deviceClassName: gpu.example.com, allocationMode: All}}]}}}}`:               "",
	} {
		template := read[resourcev1.ResourceClaimTemplate](t, claim)
		err := Check(template)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "ResourceClaimTemplate t: spec.spec.devices."+want) {
			t.Errorf("%s: %v, want %q", claim, err, want)
		}
		var o Objects
		o.Put(template)
		if kept := len(o.Claims().templates) == 1; kept != (want == "") {
			t.Errorf("%s: kept %v", claim, kept)
		}
	}
	class := read[resourcev1.DeviceClass](t, `{metadata: {name: c}, spec: {selectors: [{}]}}`)
	if err := Check(class); err == nil || err.Error() != "DeviceClass c: spec.selectors[0] has no cel: want an expression" {
		t.Errorf("class: %v", err)
	}
}
