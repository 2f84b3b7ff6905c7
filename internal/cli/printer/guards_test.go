package printer

import (
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

func TestStatusShowsWhichPodsAreGuarded(t *testing.T) {
	cluster := apiv1.Cluster{
		Groups: []apiv1.Group{{Name: "cpu", Current: 2}, {Name: "gpu", Current: 9, Guarded: 8}},
		Guards: []apiv1.Guard{{Pod: "llm-head", Group: "headgroup", By: "heliostat"}, {Pod: "g1", Group: "gpu", By: "user"}},
	}
	for _, pod := range []string{"g2", "g3", "g4", "g5", "g6", "g7", "g8"} {
		cluster.Guards = append(cluster.Guards, apiv1.Guard{Pod: pod, Group: "gpu", By: "heliostat"})
	}
	var out strings.Builder
	if err := WriterOf("table", Look{Now: time.Now}, WriteCluster)(&out, cluster); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  head: llm-head\n", "  gpu, 8 of 9: g1 (by its user), g2, g3, g4, g5, 3 more\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line %q in:\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := WriterOf("table", Look{Now: time.Now}, WriteCluster)(&out, apiv1.Cluster{}); err != nil || strings.Contains(out.String(), "uarded") {
		t.Errorf("without guards, error %v:\n%s", err, out.String())
	}
}
