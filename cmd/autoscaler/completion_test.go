package main

import (
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestNamesAreCompletedByWhatTheServerHas(t *testing.T) {
	r := newRemote(t)
	kept := nodepool.OwnedRequest{Cluster: llmKey}
	kept.ID = "train-7"
	r.owned[kept.ID] = kept
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"status", ""}, "ml/llm\n:4\n"}, {[]string{"status", "dev"}, ":4\n"}, {[]string{"freeze", "-n", "ml", "l"}, "llm\n:4\n"}, {[]string{"request", "ml/llm", ""}, ":4\n"},
		{[]string{"status", "-o", ""}, "table\nwide\njson\nyaml\n:4\n"}, {[]string{"status", "-n", ""}, "ml\n:4\n"},
		{[]string{"explain", "ml/llm", "--group", ""}, "cpu\ngpu\n:4\n"}, {[]string{"explain", "ml/llm", "--group", "g"}, "gpu\n:4\n"},
		{[]string{"explain", "ml/llm", "--pod", ""}, "worker-7\n:4\n"}, {[]string{"explain", "--group", ""}, ":4\n"}, {[]string{"explain", "ml/other", "--group", ""}, ":1\n"},
		{[]string{"request", "ml/llm", "--id", ""}, "train-7\n:4\n"}, {[]string{"serve", "--mode", ""}, "managed\nshadow\noff\n:4\n"},
		{[]string{"request", "ml/llm", "-f", ""}, ":0\n"}, {[]string{"doctor", ""}, ":4\n"}, {[]string{"doctor", "-f", "a", ""}, ":0\n"}, {[]string{"version", ""}, ":4\n"},
	} {
		code, out, _ := command(t, "", append([]string{"autoscaler", "__complete"}, c.argv...)...)
		if code != cli.ExitOK || out != c.want {
			t.Errorf("%v: exit %d %q, want %q", c.argv, code, out, c.want)
		}
	}
}

func TestContextsAreCompletedFromTheKubeconfig(t *testing.T) {
	withoutAnyServer(t)
	t.Setenv("KUBECONFIG", kubeconfigOf(t, "http://127.0.0.1:1"))
	for _, name := range []string{"status", "doctor", "nodepools", "gpus", "agent"} {
		if code, out, _ := command(t, "", "autoscaler", "__complete", name, "--context", ""); code != cli.ExitOK || out != "c\n:4\n" {
			t.Errorf("%s --context: exit %d %q", name, code, out)
		}
	}
}

// TestFilesAreCompletedWhereTheyAreMeant checks that the usage of a flag whose value is the name of a file says so.
func TestFilesAreCompletedWhereTheyAreMeant(t *testing.T) {
	for _, command := range slices.Concat(newRoot("autoscaler").Commands(), newRoot(rayName).Commands()) {
		for _, name := range []string{"kubeconfig", "config", "pools", "prices", "filename", "snapshot", "what-if", "tls-key-file", "client-key"} {
			if _, completed := command.GetFlagCompletionFunc(name); completed && command.Flags().Lookup(name) != nil {
				t.Errorf("%s --%s does not complete files", command.Name(), name)
			}
		}
		if command.ValidArgsFunction == nil && command.ValidArgs == nil {
			t.Errorf("%s completes its arguments by files", command.Name())
		}
	}
}

func TestEveryShellGetsAScript(t *testing.T) {
	for shell := range shells {
		if code, out, errOut := command(t, "", "autoscaler", "completion", shell); code != cli.ExitOK || !strings.Contains(out, "autoscaler") {
			t.Errorf("%s: exit %d %s", shell, code, errOut)
		}
	}
}
