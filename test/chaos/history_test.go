package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/test/chaos/verdict"
)

func TestAHistoryKeepsTheFactsOfTheRound(t *testing.T) {
	h, err := newHistory(filepath.Join(t.TempDir(), "history"))
	if err != nil {
		t.Fatal(err)
	}
	state := func(second int64, waiting int64) verdict.State {
		return verdict.State{At: time.Unix(second, 0), Cluster: "a", Waiting: map[string]int64{"cpu": waiting}}
	}
	h.add(verdict.Phase{Name: verdict.Rest})
	h.add(state(0, 5))
	if err := h.restart(); err != nil {
		t.Fatal(err)
	}
	for _, fact := range []verdict.Fact{verdict.Phase{Name: verdict.Storm}, verdict.Usage{}, state(1, 5), state(2, 5),
		verdict.Answer{Cluster: "a"}, state(3, 6), verdict.End{Pod: "w", Busy: true}} {
		h.add(fact)
	}
	text, err := h.read()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	want := []string{`{"Phase":`, `"cpu":5`, `"cpu":6`, `"Pod":"w"`}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), text)
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("line %d: %s, want %s in it", i, lines[i], want[i])
		}
	}
	if err := h.close(); err != nil {
		t.Error(err)
	}
}
