package plannertest

import (
	"encoding/json"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

// Read parses a hand-written snapshot.
func Read(t *testing.T, text string) model.Snapshot {
	t.Helper()
	s, err := snapshotfile.ReadSnapshot(strings.NewReader(text), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func Compact(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
