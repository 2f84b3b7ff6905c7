package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// platforms are the platforms of the image.
var platforms = []string{"amd64", "arm64"}

// program is one program in the image.
type program struct {
	path string // path in the image
	dir  string // directory of the module, below the checkout
	pkg  string
}

var (
	autoscaler = program{path: "usr/local/bin/autoscaler", dir: ".", pkg: "./cmd/autoscaler"}
	bash       = program{path: "bin/bash", dir: "tools", pkg: "./image/bash"}
)

// compiled is a program for one platform.
type compiled struct {
	program
	file string
	info *buildinfo.BuildInfo
	// release is the tag of the image.
	release string
}

// compile builds a static program without debug information. It omits paths of this machine, so that the same sources
// and the same Go version produce the same bytes on every machine.
func (p program) compile(ctx context.Context, source, work, arch string) (compiled, error) {
	file := filepath.Join(work, arch, filepath.Base(p.path))
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, p.pkg)
	c.Dir = filepath.Join(source, p.dir)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOWORK=off")
	if said, err := c.CombinedOutput(); err != nil {
		return compiled{}, fmt.Errorf("building %s for %s: %w\n%s", p.pkg, arch, err, strings.TrimSpace(string(said)))
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return compiled{}, fmt.Errorf("reading what %s for %s was built from: %w", p.pkg, arch, err)
	}
	release, err := releaseOf(source)
	return compiled{program: p, file: file, info: info, release: release}, err
}

// releaseOf returns the appVersion of the chart, which installs the image with this tag.
func releaseOf(source string) (string, error) {
	chart := filepath.Join(source, "deploy", "chart", "Chart.yaml")
	text, err := os.ReadFile(chart)
	if err != nil {
		return "", fmt.Errorf("reading the release: %w", err)
	}
	found := regexp.MustCompile(`(?m)^appVersion: (\S+)$`).FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("reading the release from %s: want a line appVersion: VERSION", chart)
	}
	return string(found[1]), nil
}

// setting returns a build setting that the go command recorded, or "".
func (c compiled) setting(key string) string {
	for _, s := range c.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// created returns the time of the revision, so that two builds of a revision are the same. It returns the epoch if the
// build recorded no revision.
func (c compiled) created() time.Time {
	at, err := time.Parse(time.RFC3339, c.setting("vcs.time"))
	if err != nil {
		return time.Unix(0, 0).UTC()
	}
	return at.UTC()
}
