package observe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// promtool runs promtool and returns its output.
func promtool(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	path, err := program(t.Context(), "promtool")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, arguments...).CombinedOutput()
	return string(out), err
}

func TestAlertsAreRulesThatPrometheusTakes(t *testing.T) {
	if out, err := promtool(t, "check", "rules", alertsFile); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestEachAlertFiresAndDoesNotFireWhereItShould(t *testing.T) {
	text, err := os.ReadFile("testdata/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := alertExpressions()
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range alerts {
		name := strings.TrimPrefix(alert.where, "alert ")
		for _, kind := range []string{"fires", "does not fire"} {
			if want := fmt.Sprintf("- name: %s %s\n", name, kind); strings.Count(string(text), want) != 1 {
				t.Errorf("no test is named %q", strings.TrimSpace(want))
			}
		}
	}
	rules, err := filepath.Abs(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	tests := filepath.Join(t.TempDir(), "alerts_test.yaml")
	if err := os.WriteFile(tests, []byte(strings.Replace(string(text), "[ALERTS]", "["+rules+"]", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := promtool(t, "test", "rules", tests); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestDashboardsWorkWithAnyDataSourceAndSayWhatTheyShow(t *testing.T) {
	boards, err := dashboards()
	if err != nil {
		t.Fatal(err)
	}
	if len(boards) != 4 {
		t.Errorf("%d dashboards, want 4", len(boards))
	}
	uids := map[string]string{}
	for file, board := range boards {
		if other, taken := uids[board.UID]; taken || !strings.HasPrefix(board.UID, "heliostat-") || !strings.HasPrefix(board.Title, "Heliostat / ") {
			t.Errorf("%s is %q with the uid %q (also of %q)", file, board.Title, board.UID, other)
		}
		uids[board.UID] = file
		known := []string{}
		for _, v := range board.Templating.List {
			known = append(known, v.Name)
		}
		if !slices.Contains(known, "datasource") {
			t.Errorf("%s has no variable for its data source", file)
		}
		for _, p := range board.Panels {
			if len(p.Panels) > 0 {
				t.Errorf("%s: panels stand in the row %s, where no test looks: want them beside it", file, p.Title)
			}
			if p.Type == "row" {
				continue
			}
			if p.Datasource.UID != "${datasource}" || p.Description == "" || p.FieldConfig.Defaults.NoValue == "" || len(p.Targets) == 0 {
				t.Errorf("%s: %s lacks its data source, a description, queries, or what it says without data", file, p.Title)
			}
			for _, target := range p.Targets {
				for _, name := range []string{"namespace", "cluster"} {
					if strings.Contains(target.Expr, "$"+name) && !slices.Contains(known, name) {
						t.Errorf("%s: %s uses $%s, which the dashboard does not have", file, p.Title, name)
					}
				}
			}
		}
	}
}
