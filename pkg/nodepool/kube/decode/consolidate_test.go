package decode

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestTheAnnotationSaysWhichWorkMayMove(t *testing.T) {
	for text, want := range map[string]struct {
		moves    nodepool.Consolidate
		reported int
	}{
		"none": {nodepool.ConsolidateNone, 0}, "serve": {nodepool.ConsolidateServe, 0},
		"restartable": {nodepool.ConsolidateRestartable, 0},
		"Serve":       {nodepool.ConsolidateNone, 1}, "true": {nodepool.ConsolidateNone, 1}, "": {nodepool.ConsolidateNone, 1},
	} {
		report, cluster := &Report{}, nodepool.Cluster{}
		readAnnotations(FieldsOf(map[string]any{"annotations": map[string]any{nodepool.ConsolidateAnnotation: text}}, report), &cluster)
		if cluster.Consolidate != want.moves || len(report.All) != want.reported {
			t.Errorf("%q: %s with findings %v", text, cluster.Consolidate, report.All)
		}
	}
}
