package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestRunningListsEveryFlagOfServeWithItsDefault(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	page, err := os.ReadFile("../../docs/running.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "### Flags\n")
	table, _, _ = strings.Cut(table, "\n## ")
	want, got := map[string]string{}, map[string]string{}
	newServeCommand().Flags().VisitAll(func(f *pflag.Flag) { want[f.Name] = strings.Trim(f.DefValue, "[]") })
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| ([^|]*)\\|").FindAllStringSubmatch(table, -1) {
		got[row[1]] = strings.TrimSpace(row[2])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags and defaults (-source +docs):\n%s", diff)
	}
}

func TestEveryFlagOfServeAndOfTheSidecarHasASubject(t *testing.T) {
	for _, c := range []*cobra.Command{newServeCommand(), newSidecarCommand()} {
		for _, s := range sectionsOf(c.Flags()) {
			if s.title == "" {
				s.flags.VisitAll(func(f *pflag.Flag) {
					if f.Name != configFlag {
						t.Errorf("%s: --%s is in none of serveSubjects", c.Name(), f.Name)
					}
				})
			}
		}
	}
	_, out, _ := command(t, "", "autoscaler", "serve", "--help")
	if strings.Contains(out, "(default [])") {
		t.Error("the help tells of empty lists as defaults")
	}
	for _, s := range serveSubjects {
		if !strings.Contains(out, "\n\n"+s.title+":\n") {
			t.Errorf("the help has no %s", s.title)
		}
	}
}
