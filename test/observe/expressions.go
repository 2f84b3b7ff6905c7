package observe

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// alertsFile is the file with the rules of all alerts.
var alertsFile = filepath.Join(root, "deploy/alerts/heliostat.yaml")

// expression is one PromQL expression of a dashboard or an alert.
type expression struct {
	// where identifies the expression: `alert NAME`, or `FILE: PANEL, A` with the letter of its query.
	where, text string
}

// panel is the part of a Grafana panel that tests read.
type panel struct {
	Title, Type, Description string
	Datasource               struct{ UID string }
	Targets                  []struct{ Expr, RefID string }
	FieldConfig              struct{ Defaults struct{ NoValue string } }
	Panels                   []panel
}

// dashboard is the part of a Grafana dashboard that tests read.
type dashboard struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

// dashboards returns the dashboards in deploy/dashboards, by file name.
func dashboards() (map[string]dashboard, error) {
	files, err := filepath.Glob(filepath.Join(root, "deploy/dashboards/*.json"))
	if err != nil {
		return nil, fmt.Errorf("finding dashboards: %w", err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a dashboard: %w", err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		all[filepath.Base(file)] = d
	}
	return all, nil
}

// labelValues matches the function with which Grafana queries the values of a variable.
var labelValues = regexp.MustCompile(`^label_values\((.+), [a-z_]+\)$`)

// expressions returns the expressions of all dashboards, including their variables, and of all alerts. It replaces the
// variables with values.
func expressions(namespace, cluster string) ([]expression, error) {
	boards, err := dashboards()
	if err != nil {
		return nil, err
	}
	var all []expression
	fill := strings.NewReplacer("$namespace", namespace, "$cluster", cluster, "$__range", "5m")
	for file, board := range boards {
		for _, v := range board.Templating.List {
			if v.Type != "query" {
				continue
			}
			asked := labelValues.FindStringSubmatch(v.Definition)
			if asked == nil {
				return nil, fmt.Errorf("%s: variable %s: %q is no label_values(SELECTOR, LABEL)", file, v.Name,
					v.Definition)
			}
			all = append(all, expression{fmt.Sprintf("%s: variable %s", file, v.Name), fill.Replace(asked[1])})
		}
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				all = append(all,
					expression{fmt.Sprintf("%s: %s, %s", file, panel.Title, target.RefID), fill.Replace(target.Expr)})
			}
		}
	}
	alerts, err := alertExpressions()
	return append(all, alerts...), err
}

func alertExpressions() ([]expression, error) {
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		return nil, fmt.Errorf("reading alerts: %w", err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("reading %s: %w", alertsFile, err)
	}
	var all []expression
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			all = append(all, expression{"alert " + rule.Alert, rule.Expr})
		}
	}
	return all, nil
}
