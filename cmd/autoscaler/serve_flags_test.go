package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/cmd/autoscaler/engine"
	"heliostat.dev/heliostat/internal/cli"
)

func TestEveryFlagOfServeAndOfTheSidecarHasASubject(t *testing.T) {
	for _, c := range []*cobra.Command{engine.Serve(), engine.Sidecar()} {
		for _, s := range cli.GroupsOf(c.Flags()) {
			if s.Title == "" {
				s.Flags.VisitAll(func(f *pflag.Flag) {
					if f.Name != cli.ConfigFlag && !f.Hidden {
						t.Errorf("%s: --%s is in no group", c.Name(), f.Name)
					}
				})
			}
		}
	}
	_, out, _ := command(t, "", "autoscaler", "serve", "--help")
	if strings.Contains(out, "(default [])") {
		t.Error("the help tells of empty lists as defaults")
	}
	for _, s := range cli.GroupsOf(engine.Serve().Flags()) {
		if s.Title != "" && !strings.Contains(out, "\n\n"+s.Title+":\n") {
			t.Errorf("the help has no %s", s.Title)
		}
	}
}
