package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/api"
)

var (
	rayInAnExample       = regexp.MustCompile(`rayproject/ray:([\w.]+)|rayVersion: *"?([\w.]+)`)
	heliostatInAnExample = regexp.MustCompile(`/heliostat:([\w.]+)|image\.tag=([\w.]+)|newTag: ([\w.]+)`)
)

// places are the files that contain the version, besides the examples. Each pattern has at least this many matches.
var places = []struct {
	files, pattern string
	least          int
}{
	{"deploy/chart/Chart.yaml", `(?m)^(?:version|appVersion): *"?([^\s"]+)`, 2},
	{"deploy/chart/README.md", `Version (\S+) of the chart|installs Heliostat ([\w.]+\w)`, 2},
	{"deploy/*.yaml", `app\.kubernetes\.io/version: "([^"]+)"|/heliostat(?:-agent)?:([\w.-]+)`, 10},
	{"deploy/kustomize/*/heliostat.yaml", `app\.kubernetes\.io/version: "([^"]+)"|/heliostat(?:-agent)?:([\w.-]+)`, 10},
	{"CHANGELOG.md", `\A(?s:.*?)\n## (\d\S*)`, 1}, // the latest one
}

// Program, chart, image and manifests have one version. The builders of the image and the plugin read it from the
// chart, or use the tag.
func TestThereIsOneVersion(t *testing.T) {
	for _, place := range places {
		files, err := filepath.Glob(filepath.Join(root, place.files))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, file := range files {
			path := strings.TrimPrefix(file, root+"/")
			for _, m := range regexp.MustCompile(place.pattern).FindAllStringSubmatch(read(t, path), -1) {
				found++
				if version := strings.Join(m[1:], ""); version != api.Release {
					seen := m[0][max(0, len(m[0])-60):]
					t.Errorf("%s: version %s, want %s as in internal/api/version.go (%q)", path, version, api.Release, seen)
				}
			}
		}
		if found < place.least {
			t.Errorf("%s: %d versions, want at least %d", place.files, found, place.least)
		}
	}
}

// All examples use the same Ray, that of the demo, and the same Heliostat, that of this source, so that they can be
// combined.
func TestExamplesUseOneRayAndOneHeliostat(t *testing.T) {
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
				if tag != api.Release {
					t.Errorf("%s: %s, want %s, the release of this source", path, m[0], api.Release)
				}
			}
		}
	}
	if rays < 20 || heliostats < 5 {
		t.Errorf("examples have %d Rays and %d Heliostats", rays, heliostats)
	}
}
