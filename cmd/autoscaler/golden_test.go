package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/plans.sha256 with the plans as they are now")

// goldenFile contains one line for each snapshot file. A line contains the path and the hashes of the plan as JSON and as text.
const goldenFile = "testdata/plans.sha256"

// recorded lists the snapshot files of the repository.
func recorded(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{
		"../../internal/planner/testdata/*/*.json", "../../internal/*/testdata/*.json", "../../internal/controller/*/testdata/*.json",
		"../../test/cases/*/*.json", "../../test/bench/ray/testdata/*.json",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatalf("listing %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	return files
}

// TestGoldenPlansKeepTheirBytes compares the output of `plan` with the stored hashes for every recorded snapshot. A change of behavior changes the hashes. In that case, rewrite them with -update and explain the
// change in the commit message.
func TestGoldenPlansKeepTheirBytes(t *testing.T) {
	now := map[string]string{}
	for _, file := range recorded(t) {
		now[filepath.ToSlash(file)] = hash(planOutput(t, file, "json")) + " " + hash(planOutput(t, file, "text"))
	}
	stored := storedHashes(t)
	if *update {
		writeHashes(t, now)
		return
	}
	if len(now) < 150 {
		t.Errorf("found %d snapshots, want at least 150", len(now))
	}
	for file := range stored {
		if now[file] == "" {
			t.Errorf("%s is stored and no longer there", file)
		}
	}
	for file, line := range now {
		if stored[file] != line {
			t.Errorf("%s: plan as JSON and as text are\n%s, stored is\n%s", file, line, stored[file])
		}
	}
}

func hash(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16] }

// planOutput runs the command and returns its whole output with its exit code.
func planOutput(t *testing.T, file, output string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"autoscaler", "plan", "--snapshot", file, "--output", output}, nil, &out, &errOut)
	return fmt.Sprintf("%d\n%s\n%s", code, out.String(), errOut.String())
}

func storedHashes(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(goldenFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	stored := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		file, hashes, _ := strings.Cut(strings.TrimSpace(line), " ")
		stored[file] = hashes
	}
	return stored
}

func writeHashes(t *testing.T, all map[string]string) {
	t.Helper()
	var lines []string
	for file, line := range all {
		lines = append(lines, file+" "+line+"\n")
	}
	slices.Sort(lines)
	if err := os.WriteFile(goldenFile, []byte(strings.Join(lines, "")), 0o644); err != nil { //nolint:gosec // a file of the repository
		t.Fatal(err)
	}
}
