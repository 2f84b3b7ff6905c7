package docs

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// alerts returns the severity and the runbook address of the rules in deploy/alerts, by name.
func alerts(t *testing.T) map[string][2]string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert               string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/alerts/heliostat.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	found := map[string][2]string{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = [2]string{rule.Labels["severity"], rule.Annotations["runbook_url"]}
		}
	}
	if len(found) < 10 {
		t.Fatalf("only %d alerts were found", len(found))
	}
	return found
}

func TestAlertsAndRunbooksMatch(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs/runbooks/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, page := range pages {
		if name := strings.TrimSuffix(filepath.Base(page), ".md"); name != "README" {
			names = append(names, name)
		}
	}
	all := alerts(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(all)), names); diff != "" {
		t.Fatalf("runbooks (-alerts +pages):\n%s", diff)
	}
	index := read(t, "docs/runbooks/README.md")
	for name, alert := range all {
		if want := "https://heliostat.dev/docs/runbooks/" + name + ".md"; alert[1] != want {
			t.Errorf("%s leads to %s, want %s", name, alert[1], want)
		}
		if want := "| [" + name + "](" + name + ".md) | " + alert[0] + " |"; !strings.Contains(index, want) {
			t.Errorf("the list of runbooks lacks %q", want)
		}
		page := read(t, "docs/runbooks/"+name+".md")
		for _, part := range []string{"# " + name + "\n", "\n## Why\n", "\n## What to do\n"} {
			if !strings.Contains(page, part) {
				t.Errorf("the runbook of %s lacks %q", name, strings.TrimSpace(part))
			}
		}
	}
}

func TestRunbooksNameExistingCommandsMetricsAndReasons(t *testing.T) {
	commands := map[string]bool{}
	main, errMain := filepath.Glob(filepath.Join(root, "cmd/autoscaler/*.go"))
	engine, errEngine := filepath.Glob(filepath.Join(root, "cmd/autoscaler/engine/*.go"))
	if err := errors.Join(errMain, errEngine); err != nil {
		t.Fatal(err)
	}
	for _, source := range append(main, engine...) {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range regexp.MustCompile(`Use:\s+"([a-z]+)`).FindAllStringSubmatch(string(text), -1) {
			commands[use[1]] = true
		}
	}
	known, reasons := instruments(t), read(t, "docs/reference/reasons.md")
	named := 0
	for name := range alerts(t) {
		page := read(t, "docs/runbooks/"+name+".md")
		for _, command := range regexp.MustCompile(`(?m)\bautoscaler ([a-z]+)`).FindAllStringSubmatch(page, -1) {
			named++
			if !commands[command[1]] && strings.Contains(page, "   "+command[0]) {
				t.Errorf("the runbook of %s runs %q, which is not a command", name, command[0])
			}
		}
		for _, metric := range metricName.FindAllString(page, -1) {
			if !slices.Contains(known, metric) {
				t.Errorf("the runbook of %s names %s, which is not an instrument", name, metric)
			}
		}
		for _, reason := range regexp.MustCompile(`field-selector reason=(\w+)`).FindAllStringSubmatch(page, -1) {
			if reason[1] != "Pulled" && !strings.Contains(reasons, "`"+reason[1]+"`") { // Pulled is the kubelet's
				t.Errorf("the runbook of %s looks for Events %s, which nobody writes", name, reason[1])
			}
		}
	}
	if named < 5 {
		t.Errorf("only %d commands were found", named)
	}
}
