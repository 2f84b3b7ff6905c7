package kit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// DefaultRay is the version of Ray that pods run unless their image says otherwise.
const DefaultRay = "2.60.0"

// rayRelease is a Ray version the dev cluster can run. Its packages are pinned by ray/ray-<version>.lock.
type rayRelease struct {
	version string
	// minPython and maxPython are the minor versions of Python 3 for which the release has Linux wheels.
	minPython, maxPython int
}

// rayReleases lists what Ray published on its package index. The first is the default.
var rayReleases = []rayRelease{
	{version: DefaultRay, minPython: 10, maxPython: 14},
	{version: "2.52.0", minPython: 10, maxPython: 13},
	{version: "2.40.0", minPython: 9, maxPython: 12},
}

// RayVersions returns the Ray versions that can be asked for.
func RayVersions() []string {
	versions := make([]string, len(rayReleases))
	for i, r := range rayReleases {
		versions[i] = r.version
	}
	return versions
}

// rayEnv is a virtual environment with one Ray version.
type rayEnv struct {
	rayRelease
	python   string // the interpreter it is made with
	lock     string // the file with the pinned packages
	dir      string
	estimate time.Duration
}

// planRayEnv works out where the environment of a Ray version belongs. The directory's name covers the pinned packages
// and the interpreter.
func planRayEnv(source, cache, version string) (rayEnv, error) {
	release, err := rayReleaseOf(version)
	if err != nil {
		return rayEnv{}, err
	}
	lock := filepath.Join(source, "ray", "ray-"+version+".lock")
	pins, err := os.ReadFile(lock)
	if err != nil {
		return rayEnv{}, fmt.Errorf("reading the pins of Ray %s: %w", version, err)
	}
	python, minor, err := findPython(release)
	if err != nil {
		return rayEnv{}, err
	}
	hash := sha256.Sum256(fmt.Appendf(pins, "\n%s 3.%d", python, minor))
	dir := filepath.Join(cache, "ray", version+"-"+hex.EncodeToString(hash[:])[:12])
	return rayEnv{rayRelease: release, python: python, lock: lock, dir: dir, estimate: time.Minute}, nil
}

// rayReleaseOf returns what is known of a Ray version.
func rayReleaseOf(version string) (rayRelease, error) {
	for _, r := range rayReleases {
		if r.version == version {
			return r, nil
		}
	}
	return rayRelease{}, fmt.Errorf("Ray %q has no pinned packages here; there are %v", version, RayVersions())
}

// title names the environment to a person.
func (e rayEnv) title() string { return "Ray " + e.version }

// complete is the file that a finished environment has. A virtual environment holds its own path and cannot be made
// elsewhere and moved, so a half-made one is recognised by what it lacks.
func (e rayEnv) complete() string { return filepath.Join(e.dir, ".complete") }

// built says whether the environment is finished.
func (e rayEnv) built() bool { return exists(e.complete()) }

// build makes the environment unless it is there; a second process waits for the first.
func (e rayEnv) build(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(e.dir), 0o755); err != nil {
		return err
	}
	lock, err := WaitLock(ctx, e.dir+".lock")
	if err != nil {
		return err
	}
	defer lock.Release()
	if e.built() {
		return nil
	}
	if err := os.RemoveAll(e.dir); err != nil {
		return fmt.Errorf("removing a half-made environment: %w", err)
	}
	if err := runQuietly(ctx, e.python, "-m", "venv", e.dir); err != nil {
		return fmt.Errorf("creating a virtual environment: %w", err)
	}
	// The pins are complete, so nothing is resolved; wheels only, because a machine may lack a C compiler.
	pip := []string{"-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--no-deps",
		"--only-binary=:all:", "--requirement", e.lock}
	if err := runQuietly(ctx, filepath.Join(e.dir, "bin", "python"), pip...); err != nil {
		return fmt.Errorf("installing the pinned packages: %w", err)
	}
	return os.WriteFile(e.complete(), nil, 0o644)
}

// runQuietly runs a program and shows what it printed only in the error.
func runQuietly(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%s: %w: %s", strings.Join(append([]string{filepath.Base(program)}, args[:2]...), " "), err, lastLines(output.String(), 10))
	}
	return nil
}

// findPython returns the path and the minor version of an interpreter for which the release has wheels: python3 itself
// where it fits, else the newest that does.
func findPython(release rayRelease) (path string, minor int, err error) {
	names := []string{"python3"}
	for minor := release.maxPython; minor >= release.minPython; minor-- {
		names = append(names, fmt.Sprintf("python3.%d", minor))
	}
	seen := "none"
	for _, name := range names {
		path, minor, err := inspectPython(name)
		if err != nil {
			continue
		}
		if minor >= release.minPython && minor <= release.maxPython {
			return path, minor, nil
		}
		seen = fmt.Sprintf("3.%d", minor)
	}
	return "", 0, fmt.Errorf("Ray %s needs Python 3.%d to 3.%d on PATH, found %s", release.version, release.minPython, release.maxPython, seen)
}

// inspectPython asks an interpreter for its own path, which may hide behind a shim, and its minor version.
func inspectPython(name string) (path string, minor int, err error) {
	out, err := exec.Command(name, "-c", "import sys; print(sys.version_info[1], sys.executable)").Output()
	if err != nil {
		return "", 0, withStderr(err)
	}
	if _, err := fmt.Sscan(string(out), &minor, &path); err != nil {
		return "", 0, fmt.Errorf("reading the version of %s: %w", name, err)
	}
	return path, minor, nil
}
