package snapshotfile

import (
	"fmt"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// BenchmarkExportable bounds a live snapshot of 1,000 workers that has nothing to bound, as each cycle does.
func BenchmarkExportable(b *testing.B) {
	var s model.Snapshot
	for i := range 20 {
		s.Groups = append(s.Groups, model.Group{Name: fmt.Sprint("g", i), Max: 100, NumOfHosts: 1,
			Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(8), raydemand.GPU: raydemand.One}})
	}
	for i := range 1000 {
		total := raydemand.Bundle{raydemand.CPU: raydemand.Whole(8), raydemand.GPU: raydemand.One,
			raydemand.Memory: raydemand.Whole(16 << 30), raydemand.ObjectStoreMemory: raydemand.Whole(4 << 30),
			fmt.Sprint("node:10.0.0.", i): raydemand.One}
		s.Nodes = append(s.Nodes, model.Node{Pod: fmt.Sprint("pod-", i), Group: fmt.Sprint("g", i%20),
			State: model.Running, Total: total, Available: total.Clone(), Since: time.Unix(1, 0),
			Labels:   map[string]string{"ray.io/node-id": fmt.Sprint(i), "zone": "a", "ray.io/node-group": "g"},
			Activity: []string{raydemand.ActiveWorkers}, KubeNode: fmt.Sprint("node-", i), Guard: "user"})
	}
	for b.Loop() {
		Exportable(s)
	}
}
