// Command concurrency selects the packages of the module in the current directory whose tests need a second run, so
// that the others are tested without its cost.
//
//	concurrency race     packages whose code or tests are concurrent, for the race detector
//	concurrency long     packages with tests that -short makes shorter
//
// It reads the source, so no list of packages can become outdated. It must not run tests.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	if len(arguments) != 1 || !slices.Contains([]string{"race", "long"}, arguments[0]) {
		return errors.New("usage: concurrency race|long")
	}
	packages, err := list()
	if err != nil {
		return err
	}
	var lines []string
	for _, p := range packages {
		found, err := p.read()
		switch {
		case err != nil:
			return err
		case arguments[0] == "long" && found.long, arguments[0] == "race" && found.concurrent && found.tested:
			lines = append(lines, p.ImportPath)
		}
	}
	_, err = fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// listed is a package in the output of go list.
type listed struct {
	Dir, ImportPath                              string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
}

// list returns the packages of the module in the current directory.
func list() (packages []listed, err error) {
	cmd := exec.Command("go", "list", "-json=Dir,ImportPath,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); err == io.EOF {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("listing packages: %w", err)
		}
		packages = append(packages, p)
	}
}
