package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// vulnerability is an entry of a made-up database. It marks every version of the shell's interpreter as vulnerable.
const vulnerability = `{"schema_version": "1.3.1", "id": "GO-2099-0001", "modified": "2099-01-01T00:00:00Z", "published": "2099-01-01T00:00:00Z",
	"summary": "A vulnerability of this test", "database_specific": {"url": "https://pkg.go.dev/vuln/GO-2099-0001"}, "affected": [{"package": {"name": "mvdan.cc/sh/v3", "ecosystem": "Go"},
	"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}], "ecosystem_specific": {"imports": [{"path": "mvdan.cc/sh/v3/interp"}]}}]}`

// database writes a vulnerability database in the format of https://go.dev/doc/security/vuln/database.
func database(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return "file://" + dir
}

func TestAProgramWithAKnownVulnerabilityFailsTheCheck(t *testing.T) {
	unstamped(t)
	shell, err := bash.compile(t.Context(), checkout, t.TempDir(), "amd64")
	must(t, err)
	const modified = `{"modified": "2099-01-01T00:00:00Z"}`
	for name, c := range map[string]struct {
		db   map[string]string
		pass bool
		said string
	}{
		"nothing is known": {map[string]string{"index/db.json": modified, "index/modules.json": "[]"}, true, "no known vulnerabilities"},
		"one is known": {map[string]string{"index/db.json": modified, "ID/GO-2099-0001.json": vulnerability,
			"index/modules.json": `[{"path": "mvdan.cc/sh/v3", "vulns": [{"id": "GO-2099-0001", "modified": "2099-01-01T00:00:00Z"}]}]`}, false, "Found in: mvdan.cc/sh/v3"},
		"the copy of the database is not there": {nil, false, "index"},
	} {
		t.Run(name, func(t *testing.T) {
			check := exec.CommandContext(t.Context(), filepath.Join(checkout, ".ci/vulnerabilities"), shell.file)
			check.Env = append(os.Environ(), "HELIOSTAT_VULNDB="+database(t, c.db))
			said, err := check.CombinedOutput()
			if (err == nil) != c.pass || !strings.Contains(string(said), c.said) {
				t.Errorf("%v: %s\nwant %q and pass: %v", err, said, c.said, c.pass)
			}
		})
	}
}
