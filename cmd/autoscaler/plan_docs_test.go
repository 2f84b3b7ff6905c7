package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli"
)

func TestTheExampleOfAPlanFromARayClusterIsWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(page), "```json\n")
	snapshot, rest, closed := strings.Cut(example, "```\n```text\n")
	want, _, ended := strings.Cut(rest, "```\n")
	if !found || !closed || !ended {
		t.Fatal("the page has no example")
	}
	code, out, errOut := command(t, snapshot, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	if diff := cmp.Diff(want, out); code != cli.ExitOK || diff != "" {
		t.Errorf("exit %d %s (-page +printed):\n%s", code, errOut, diff)
	}
}
