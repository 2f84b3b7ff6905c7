package snapshotfile

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
)

func TestWhereAStartingWorkerIsIsReadAsItIsWritten(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	want := &arrival.State{Stage: arrival.NodeReady, Message: "its GPU", Since: at, ExpectedAt: at.Add(time.Minute), LateAt: at.Add(time.Hour)}
	text, err := json.Marshal(model.Snapshot{Groups: []model.Group{{Name: "gpu", NumOfHosts: 1}}, Nodes: []model.Node{{Pod: "a", Group: "gpu", State: model.Pending, Arrival: want}}})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := ReadDocument(strings.NewReader(string(text)), "s.json")
	if err != nil || len(doc.Findings) > 0 {
		t.Fatalf("%v, %v", err, doc.Findings)
	}
	if diff := cmp.Diff(want, doc.Snapshot.Nodes[0].Arrival); diff != "" {
		t.Errorf("arrival (-want +got):\n%s", diff)
	}
	wrong := strings.Replace(string(text), "node-ready", "node-almost", 1)
	if _, err = ReadDocument(strings.NewReader(wrong), "s.json"); err == nil || !strings.Contains(err.Error(), "nodes[0].arrival.stage") {
		t.Errorf("a stage that does not exist: %v", err)
	}
}
