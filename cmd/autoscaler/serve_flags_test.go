package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/cmd/autoscaler/engine"
	"heliostat.dev/heliostat/internal/cli"
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
	engine.Serve().Flags().VisitAll(func(f *pflag.Flag) { want[f.Name] = strings.Trim(f.DefValue, "[]") })
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| ([^|]*)\\|").FindAllStringSubmatch(table, -1) {
		got[row[1]] = strings.TrimSpace(row[2])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags and defaults (-source +docs):\n%s", diff)
	}
}

func TestRunningListsTheFlagsThatTheSidecarLacks(t *testing.T) {
	page, err := os.ReadFile("../../docs/running.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "The sidecar has the same flags, except these")
	list, _, _ = strings.Cut(list, "\n\n")
	var want, got []string
	sidecar := engine.Sidecar().Flags()
	engine.Serve().Flags().VisitAll(func(f *pflag.Flag) {
		if sidecar.Lookup(f.Name) == nil {
			want = append(want, f.Name)
		}
	})
	for _, flag := range regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(list, -1) {
		got = append(got, flag[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags (-source +docs):\n%s", diff)
	}
}

func TestEveryFlagOfServeAndOfTheSidecarHasASubject(t *testing.T) {
	for _, c := range []*cobra.Command{engine.Serve(), engine.Sidecar()} {
		for _, s := range cli.GroupsOf(c.Flags()) {
			if s.Title == "" {
				s.Flags.VisitAll(func(f *pflag.Flag) {
					if f.Name != cli.ConfigFlag && !f.Hidden {
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
	for _, s := range cli.ServeGroups {
		if !strings.Contains(out, "\n\n"+s.Title+":\n") {
			t.Errorf("the help has no %s", s.Title)
		}
	}
}
