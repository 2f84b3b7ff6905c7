package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The table in CONTRIBUTING lists every package folder, so that readers find things there.
func TestContributingListsEveryFolder(t *testing.T) {
	var listed []string
	for _, path := range firstColumn(between(t, "CONTRIBUTING.md", "## Where things are\n", "\n## ")) {
		if strings.Contains(path, "*") {
			continue
		}
		listed = append(listed, path)
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Errorf("CONTRIBUTING names %s: %v", path, err)
		}
	}
	for _, parent := range []string{"cmd", "pkg", "internal", "api", "deploy", "examples", "test"} {
		entries, err := os.ReadDir(filepath.Join(root, parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			path := parent + "/" + entry.Name()
			if entry.IsDir() && path != "api/proto" && !slices.Contains(listed, path) {
				t.Errorf("CONTRIBUTING does not say what is in %s", path)
			}
		}
	}
}
