package rewrite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Ray that does not know a flag refuses to start, so only one that has the flag gets it.
func TestTheLogMonitorIsTurnedOffOnlyWhereRayHasTheFlag(t *testing.T) {
	for _, test := range []struct {
		name, source string
		want         bool
	}{
		{"with the flag", "@click.option(\n    \"--include-log-monitor\",\n", true},
		{"without the flag", "@click.option(\n    \"--include-dashboard\",\n", false},
		{"without Ray", "", false},
	} {
		dir := t.TempDir()
		scripts := filepath.Join(dir, "lib", "python3.12", "site-packages", "ray", "scripts")
		if err := os.MkdirAll(scripts, 0o755); err != nil {
			t.Fatal(err)
		}
		if test.source != "" {
			if err := os.WriteFile(filepath.Join(scripts, "scripts.py"), []byte(test.source), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		rewriter := testRay(map[string]string{})
		rewriter.LogMonitor = HasLogMonitorFlag(filepath.Join(dir, "bin"))
		words, err := rewriter.Args(t.Context(), []string{"ray start --block"})
		if err != nil || strings.Contains(words[0], "--include-log-monitor") != test.want {
			t.Errorf("%s: %s, %v", test.name, words, err)
		}
	}
	if HasLogMonitorFlag("") {
		t.Error("no directory has the flag")
	}
}
