package docs

import (
	"regexp"
	"strings"
	"testing"
)

// TestTheTableOfPathsIsThatOfTheSpecification compares docs/reference/rest.md with api/openapi.yaml.
func TestTheTableOfPathsIsThatOfTheSpecification(t *testing.T) {
	const cluster = "/v1/namespaces/{namespace}/rayclusters/{name}"
	table := read(t, "docs/reference/rest.md")
	paths := regexp.MustCompile(`(?m)^  (/\S*):$`).FindAllStringSubmatch(read(t, "api/openapi.yaml"), -1)
	if len(paths) < 20 {
		t.Fatalf("%d paths in the specification", len(paths))
	}
	for _, path := range paths {
		written := path[1]
		if rest, below := strings.CutPrefix(written, cluster+"/"); below {
			written = "…/" + rest
			if strings.Contains(table, "…/{name}/"+rest) {
				continue
			}
		}
		if !regexp.MustCompile("`[^`]*" + regexp.QuoteMeta(written) + "[`?]").MatchString(table) {
			t.Errorf("docs/reference/rest.md has no %s", path[1])
		}
	}
}
