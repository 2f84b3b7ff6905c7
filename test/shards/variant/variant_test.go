package variant

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestChangesFitTheSource fails as soon as a variant would be built without its change.
func TestChangesFitTheSource(t *testing.T) {
	for name, changes := range map[string][]Change{
		"clock": Clock, "deadline": WithoutDeadline, "fence": WithoutFence,
		"all": slices.Concat(Clock, WithoutDeadline, WithoutFence),
	} {
		if _, err := write(t.Context(), t.TempDir(), changes); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, change := range []Change{{File: "pkg/nodepool/kube/shards.go", From: "not there"}, {File: "pkg/nodepool/kube/none.go", From: "x"}} {
		if _, err := write(t.Context(), t.TempDir(), []Change{change}); err == nil {
			t.Errorf("%+v fits", change)
		}
	}
}

// clock prints whether the wall clock and the monotonic clock are wrong after its file was written.
const clock = `package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	before := time.Now()
	if err := os.WriteFile(os.Args[1], []byte(os.Args[2]), 0o644); err != nil {
		panic(err)
	}
	time.Sleep(100 * time.Millisecond)
	after := time.Now()
	fmt.Println(after.Round(0).Sub(before.Round(0)).Round(time.Second), after.Sub(before).Round(time.Second))
}
`

func TestOnlyTheWallClockIsWrong(t *testing.T) {
	dir := t.TempDir()
	overlay, err := write(t.Context(), dir, Clock)
	if err != nil {
		t.Fatal(err)
	}
	source, file := filepath.Join(dir, "main.go"), filepath.Join(dir, "wrong")
	if err := os.WriteFile(source, []byte(clock), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []int{60, -60} {
		run := exec.CommandContext(t.Context(), "go", "run", "-overlay", overlay, source, file, fmt.Sprint(seconds))
		run.Env = append(os.Environ(), ClockVariable+"="+file)
		out, err := run.CombinedOutput()
		want := fmt.Sprintln(time.Duration(seconds)*time.Second, "0s")
		if err != nil || strings.TrimSpace(string(out)) != strings.TrimSpace(want) {
			t.Errorf("a step of %d s: %q, %v; want %q", seconds, out, err, want)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
