package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// If Ray was never read, there is no age: 0 s would mean that it was read just now.
func TestDashboardsShowNoAgeWithoutData(t *testing.T) {
	invented := regexp.MustCompile(`"expr": "[^\n]*_age_seconds[^\n]*or vector\(0\)`)
	files, err := filepath.Glob("../deploy/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range invented.FindAllString(string(text), -1) {
			t.Errorf("%s: %s", file, found)
		}
	}
}
