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
)

// release is a version of a package that the Python package index has.
type release struct {
	name, version string
	// minPython and maxPython are the minor versions of Python 3 for which the release has Linux wheels.
	minPython, maxPython int
}

// venv is a virtual environment of Python with pinned packages.
type venv struct {
	python string // the interpreter it is made with
	lock   string // the file with the pinned packages
	dir    string
}

// Tool is a program of the Python package index that a test runs.
type Tool struct {
	// Name and Version are the package's; Lock is the file with the pins of all that it needs.
	Name, Version, Lock string
	// MinPython and MaxPython are the minor versions of Python 3 that it runs on.
	MinPython, MaxPython int
}

// EnsureTool installs a tool unless it is there, and returns the directory of its programs.
func EnsureTool(ctx context.Context, tool Tool) (bin string, err error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	known := release{tool.Name, tool.Version, tool.MinPython, tool.MaxPython}
	env, err := planVenv(filepath.Join(cache, "python", tool.Name), tool.Lock, known)
	if err != nil {
		return "", err
	}
	if err := env.build(ctx); err != nil {
		return "", fmt.Errorf("installing %s %s: %w", tool.Name, tool.Version, err)
	}
	return filepath.Join(env.dir, "bin"), nil
}

// planVenv works out where the environment of a version belongs. The directory's name covers the pinned packages and
// the interpreter.
func planVenv(below, lock string, known release) (venv, error) {
	pins, err := os.ReadFile(lock)
	if err != nil {
		return venv{}, fmt.Errorf("reading the pins of %s %s: %w", known.name, known.version, err)
	}
	python, minor, err := findPython(known)
	if err != nil {
		return venv{}, err
	}
	hash := sha256.Sum256(fmt.Appendf(pins, "\n%s 3.%d", python, minor))
	return venv{
		python: python,
		lock:   lock,
		dir:    filepath.Join(below, known.version+"-"+hex.EncodeToString(hash[:])[:12]),
	}, nil
}

// complete is the file that a finished environment has. A virtual environment holds its own path and cannot be made
// elsewhere and moved, so an incomplete one is recognized by this missing file.
func (e venv) complete() string { return filepath.Join(e.dir, ".complete") }

// built reports whether the environment is complete.
func (e venv) built() bool { return exists(e.complete()) }

// build makes the environment unless it is there; a second process waits for the first.
func (e venv) build(ctx context.Context) error {
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
		return fmt.Errorf("removing an incomplete environment: %w", err)
	}
	if err := runQuietly(ctx, e.python, "-m", "venv", e.dir); err != nil {
		return fmt.Errorf("creating a virtual environment: %w", err)
	}
	// The pins are complete, so nothing is resolved; wheels only, because a machine may lack a C compiler.
	pip := []string{
		"-m",
		"pip",
		"install",
		"--quiet",
		"--no-cache-dir",
		"--disable-pip-version-check",
		"--no-input",
		"--no-deps",
		"--only-binary=:all:",
		"--requirement",
		e.lock,
	}
	if err := runQuietly(ctx, filepath.Join(e.dir, "bin", "python"), pip...); err != nil {
		return fmt.Errorf("installing the pinned packages: %w", err)
	}
	return os.WriteFile(e.complete(), nil, 0o644)
}

// runQuietly runs a program and returns its output only in the error.
func runQuietly(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%s: %w: %s", strings.Join(append([]string{filepath.Base(program)}, args[:2]...), " "), err,
			lastLines(output.String(), 10))
	}
	return nil
}

// findPython returns the path and the minor version of an interpreter for which a release has wheels: python3 itself
// where it fits, else the newest that does.
func findPython(known release) (path string, minor int, err error) {
	names := []string{"python3"}
	for minor := known.maxPython; minor >= known.minPython; minor-- {
		names = append(names, fmt.Sprintf("python3.%d", minor))
	}
	seen := "none"
	for _, name := range names {
		path, minor, err := inspectPython(name)
		if err != nil {
			continue
		}
		if minor >= known.minPython && minor <= known.maxPython {
			return path, minor, nil
		}
		seen = fmt.Sprintf("3.%d", minor)
	}
	return "", 0, fmt.Errorf("%s %s needs Python 3.%d to 3.%d on PATH, found %s", known.name, known.version,
		known.minPython, known.maxPython, seen)
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
