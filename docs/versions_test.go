package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/httpapi"
)

var (
	rayInAnExample       = regexp.MustCompile(`rayproject/ray:([\w.]+)|rayVersion: *"?([\w.]+)`)
	heliostatInAnExample = regexp.MustCompile(`/heliostat:([\w.]+)|image\.tag=([\w.]+)|newTag: ([\w.]+)`)
)

// Who puts two examples together has one Ray and one Heliostat: that of the demo, which runs, and that of this source.
func TestTheExamplesHaveOneRayAndOneHeliostat(t *testing.T) {
	ray := ""
	for _, m := range rayInAnExample.FindAllStringSubmatch(read(t, "test/demo/raycluster.yaml"), 1) {
		ray = m[1] + m[2]
	}
	var files []string
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/howto/*.md", "docs/reference/*.md", "deploy/*.yaml", "deploy/examples/*.yaml", "test/demo/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	rays, heliostats := 0, 0
	for _, file := range files {
		path := strings.TrimPrefix(file, root+"/")
		text := read(t, path)
		for _, m := range rayInAnExample.FindAllStringSubmatch(text, -1) {
			rays++
			if m[1]+m[2] != ray {
				t.Errorf("%s: %s, want Ray %s, as in the demo", path, m[0], ray)
			}
		}
		for _, m := range heliostatInAnExample.FindAllStringSubmatch(text, -1) {
			if tag := strings.Join(m[1:], ""); tag != "TAG" {
				heliostats++
				if tag != httpapi.Release {
					t.Errorf("%s: %s, want %s, the release of this source", path, m[0], httpapi.Release)
				}
			}
		}
	}
	if rays < 20 || heliostats < 5 {
		t.Errorf("examples have %d Rays and %d Heliostats", rays, heliostats)
	}
}
