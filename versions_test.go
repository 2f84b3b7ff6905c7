package heliostat

import (
	"os"
	"regexp"
	"testing"
)

// required matches a module and its version in a go.mod file.
var required = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+) (v\S+)`)

// What modules in this tree and the parts of a dev cluster require together is compiled once if the versions are equal.
// A module far below, such as golang.org/x/sys, makes all of client-go another package.
func TestModulesInThisTreeShareVersions(t *testing.T) {
	versions := map[string]string{}
	for _, file := range []string{"go.mod", "test/go.mod", "test/devcluster/go.mod", "test/devcluster/parts/go.mod"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range required.FindAllStringSubmatch(string(text), -1) {
			if before := versions[match[1]]; before != "" && before != match[2] {
				t.Errorf("%s requires %s %s, another module %s: run `go get` there", file, match[1], match[2], before)
			}
			versions[match[1]] = match[2]
		}
	}
}
