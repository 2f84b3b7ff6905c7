package api

import (
	"encoding/json"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

func TestTheBuildHasRevisionAndGo(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.0.0-20260102030405-abcdefabcdef"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}}}
	want := apiv1.Build{Version: Release, Revision: "abc", Modified: true, RevisionTime: "2026-01-02T03:04:05Z",
		Go: "go1.26.0", Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if diff := cmp.Diff(want, buildOf(info)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheVersionNeedsARight(t *testing.T) {
	fake := &fakeAccess{}
	w := newFixture(t, func(c *Config) { c.Access = fake })
	answer := w.as("alice", http.MethodGet, "/version")
	if diff := cmp.Diff([]string{"get /version"}, fake.take()); answer.Code != http.StatusOK || diff != "" {
		t.Errorf("status %d, rights (-want +got):\n%s", answer.Code, diff)
	}
	loadSpec(t).mustMatch("Build", answer.Body.Bytes())
	var got apiv1.Build
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Go != runtime.Version() {
		t.Errorf("got %+v, %v", got, err)
	}
	if answer := w.as("", http.MethodGet, "/version"); answer.Code != http.StatusUnauthorized {
		t.Errorf("an unknown caller gets %d", answer.Code)
	}
}

// The chart installs the image of its appVersion, so the program must have the same version.
func TestTheReleaseMatchesTheChart(t *testing.T) {
	text, err := os.ReadFile("../../deploy/chart/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil || chart.AppVersion != Release {
		t.Errorf("%v: the chart's appVersion is %q, the program's release %q", err, chart.AppVersion, Release)
	}
}
