package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
)

// TestARemovedFlagSaysWhatToUseInstead checks each way to set a flag, in both forms of the program.
func TestARemovedFlagSaysWhatToUseInstead(t *testing.T) {
	outsidePods(t)
	for flag, instead := range cli.RemovedFlags {
		word := strings.ReplaceAll(flag, "-", "_")
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(word, "_", "")+": act"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, argv := range [][]string{{"autoscaler", "serve"},
			{rayName, "kuberay-autoscaler", "--cluster-name=llm", "--cluster-namespace=ml"}} {
			refused := func(name string, more ...string) {
				t.Helper()
				code, _, errOut := command(t, "", append(argv, more...)...)
				if code != cli.ExitBadInput || !strings.Contains(errOut, name+" was removed; "+instead) {
					t.Errorf("%v %v: exit %d, %q", argv, more, code, errOut)
				}
			}
			refused("--"+flag, "--"+flag)
			refused("--"+flag, "--"+flag+"=act")
			refused(strings.ReplaceAll(word, "_", ""), "--config="+file)
			variable := cli.EnvPrefix + strings.ToUpper(word)
			t.Setenv(variable, "act")
			refused(variable)
			t.Setenv(variable, "")
		}
	}
}

func TestARemovedCommandSaysWhatToUseInstead(t *testing.T) {
	for name, instead := range cli.RemovedCommands {
		want := "autoscaler: the command " + name + " was removed; " + instead + "\n"
		if code, _, errOut := command(t, "", "autoscaler", name, "-o", "json"); code != cli.ExitBadInput || errOut != want {
			t.Errorf("exit %d, %q, want %q", code, errOut, want)
		}
	}
}
