package landing_test

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestPodsThatAreGoneLeaveRoomOnTheirNode(t *testing.T) {
	full := inPool("a", node("n1", announces("nvidia.com/gpu", 4)))
	full.Use = &landing.Use{Requests: asks("nvidia.com/gpu", 4).Requests}
	shared := inPool("a", gpuNode("n2", quantities("aliyun.com/gpu-mem", 30), "ack.node.gpu.schedule=share aliyun.accelerator/nvidia_count=2"))
	shared.Use = &landing.Use{Requests: asks("aliyun.com/gpu-mem", 30).Requests}
	claimed := inPool("a", node("n3", announces("nvidia.com/gpu", 4))) // devices in several ways
	claimed.Use = &landing.Use{Requests: asks("nvidia.com/gpu", 4).Requests}
	claimed.Devices = []landing.Devices{{}}
	none := int64(0)
	stock := landing.NodesOf([]landing.Node{full, shared, claimed},
		landing.Pools{Rooms: []landing.Room{{Pool: "a", Nodes: 3, MaxNodes: new(int64), MayAddNodes: &none}}})
	whole, part := asks("nvidia.com/gpu", 1).Requests, asks("aliyun.com/gpu-mem", 10).Requests
	for name, c := range map[string]struct {
		gone  map[string][]landing.Quantities
		whole int64
	}{
		"none":                         {nil, 0},
		"two":                          {map[string][]landing.Quantities{"n1": {whole, whole}}, 2},
		"more than there are":          {map[string][]landing.Quantities{"n1": {asks("nvidia.com/gpu", 9).Requests}}, 4},
		"of an unknown node":           {map[string][]landing.Quantities{"n9": {whole}}, 0},
		"of devices in several ways":   {map[string][]landing.Quantities{"n3": {whole, whole}}, 0},
		"of parts, which no one knows": {map[string][]landing.Quantities{"n2": {part}}, 0},
	} {
		freed := stock.Freed(c.gone)
		for request, want := range map[string]int64{"nvidia.com/gpu": c.whole, "aliyun.com/gpu-mem": 0} {
			shape := asks(request, 1)
			places, pods := freed.Places([]landing.Kind{freed.KindOf("g", &shape)})
			if got := landing.New(pods, places).Empty().Room(0); got != want {
				t.Errorf("%s: room for %d pods of %s, want %d", name, got, request, want)
			}
		}
	}
	if full.Use.Requests["nvidia.com/gpu"] != raydemand.Whole(4) {
		t.Error("the nodes have changed")
	}
}
