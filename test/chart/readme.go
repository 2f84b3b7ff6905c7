package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
	helm "helm.sh/helm/v3/pkg/chart"
)

// setting is a row of the table of values.
type setting struct {
	// Key is the path, joined with dots. Default is JSON.
	Key, Default, About string
}

// settings reads the table from the comments of values.yaml, which begin with `# --`, as in helm-docs. A key that has
// such a comment is a row that includes everything below it. A key without a comment must be a map. So the table covers
// every value.
func settings(text []byte) ([]setting, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("reading values.yaml: %w", err)
	}
	if len(document.Content) != 1 {
		return nil, fmt.Errorf("reading values.yaml: want one document")
	}
	return settingsBelow(document.Content[0], "")
}

func settingsBelow(values *yaml.Node, prefix string) ([]setting, error) {
	if values.Kind != yaml.MappingNode || len(values.Content) == 0 {
		return nil, fmt.Errorf("values.yaml: %s has no comment that begins with `# --`",
			strings.TrimSuffix(prefix, "."))
	}
	var rows []setting
	for i := 0; i < len(values.Content); i += 2 {
		key, value := values.Content[i], values.Content[i+1]
		about, ok := aboutOf(key.HeadComment)
		if !ok {
			below, err := settingsBelow(value, prefix+key.Value+".")
			if err != nil {
				return nil, err
			}
			rows = append(rows, below...)
			continue
		}
		var initial any
		if err := value.Decode(&initial); err != nil {
			return nil, fmt.Errorf("values.yaml: %s%s: %w", prefix, key.Value, err)
		}
		text := &bytes.Buffer{}
		encoder := json.NewEncoder(text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(initial); err != nil {
			return nil, fmt.Errorf("values.yaml: %s%s: %w", prefix, key.Value, err)
		}
		rows = append(rows, setting{Key: prefix + key.Value, Default: strings.TrimSpace(text.String()), About: about})
	}
	return rows, nil
}

// aboutOf joins the lines of a comment. It returns false if the comment does not document a value.
func aboutOf(comment string) (string, bool) {
	first, isAbout := strings.CutPrefix(comment, "# -- ")
	if !isAbout {
		return "", false
	}
	return strings.ReplaceAll(first, "\n# ", " "), true
}

// table returns the table of values in Markdown.
func table(rows []setting) string {
	var b strings.Builder
	b.WriteString("| value | default | what it is |\n|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", row.Key, row.Default, strings.ReplaceAll(row.About, "|", `\|`))
	}
	return b.String()
}

// writeReadme generates a chart's README.md from its README.md.gotmpl.
func writeReadme(dir string, c *helm.Chart) error {
	values, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		return fmt.Errorf("making the chart's README: %w", err)
	}
	rows, err := settings(values)
	if err != nil {
		return fmt.Errorf("making the chart's README: %w", err)
	}
	page, err := template.ParseFiles(filepath.Join(dir, "README.md.gotmpl"))
	if err != nil {
		return fmt.Errorf("making the chart's README: %w", err)
	}
	var text bytes.Buffer
	if err := page.Execute(&text, map[string]any{"Chart": c.Metadata, "Values": table(rows)}); err != nil {
		return fmt.Errorf("making the chart's README: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "README.md"), text.Bytes(), 0o644)
}
