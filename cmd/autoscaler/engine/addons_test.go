package engine

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestTheLoopIsTestedWithTheRowsOfServe compares the rows of addons.go with those that the tests of the loop have.
func TestTheLoopIsTestedWithTheRowsOfServe(t *testing.T) {
	rows := func(path string) (names []string) {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range regexp.MustCompile(`(?m)^\t\t([a-z]+\.[A-Z]\w*)\(.*\),$`).FindAllSubmatch(source, -1) {
			names = append(names, string(row[1]))
		}
		return names
	}
	serve, loop := rows("addons.go"), rows("../../../internal/controller/features_test.go")
	if len(serve) < 6 || !slices.Equal(serve, loop) {
		t.Errorf("serve has the features %v, tests of the loop have %v, want the same in the same order", serve, loop)
	}
}
