package main

import (
	"strings"
	"testing"
)

func TestAMinimumThatIsNotReachedIsUnmet(t *testing.T) {
	const input = `{"maxWorkers": 3, "groups": [{"name": "a", "resources": {"CPU": 1}, "minReplicas": 3}, {"name": "b", "resources": {"CPU": 1}, "minReplicas": 2}]}`
	_, out, _ := command(t, input, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	_, unmet, _ := strings.Cut(out, "Unmet\n")
	if want := "  minimum of group b: 2 of 2 missing\n"; unmet != want {
		t.Errorf("got %q, want %q in\n%s", unmet, want, out)
	}
}
