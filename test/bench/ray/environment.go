package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"heliostat.dev/heliostat/test/devcluster/kit"
)

// solverPins are the packages of the environment with the solver.
//
//go:embed solver.lock
var solverPins []byte

// rayPython returns the interpreter of the environment with the pinned Ray, and creates the environment if it is
// missing.
func rayPython(ctx context.Context) (string, error) {
	built, err := kit.Ensure(ctx, kit.Needs{Ray: []string{kit.DefaultRay}}, os.Stderr)
	if err != nil {
		return "", fmt.Errorf("installing Ray %s: %w", kit.DefaultRay, err)
	}
	return filepath.Join(built.RayEnv(kit.DefaultRay), "bin", "python"), nil
}

// solverPython returns the interpreter of the environment with the solver. It is a copy of Ray's interpreter, which all
// wheels support, with packages of its own.
func solverPython(ctx context.Context, rayPython string) (string, error) {
	cache, err := kit.CacheDir()
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(append([]byte(rayPython+"\n"), solverPins...))
	dir := filepath.Join(cache, "solver", hex.EncodeToString(hash[:])[:12])
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("making the directory of the solver: %w", err)
	}
	lock, err := kit.WaitLock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer lock.Release()
	python := filepath.Join(dir, "bin", "python")
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err == nil {
		return python, nil
	}
	fmt.Fprintln(os.Stderr, "installing the solver, once")
	if err := installSolver(ctx, rayPython, dir); err != nil {
		return "", fmt.Errorf("installing the solver: %w", err)
	}
	return python, nil
}

// installSolver creates the environment. The pins are complete, so nothing is resolved. It installs only wheels,
// because a machine may lack a C compiler.
func installSolver(ctx context.Context, rayPython, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := runQuietly(ctx, rayPython, "-m", "venv", dir); err != nil {
		return err
	}
	pins := filepath.Join(dir, "solver.lock")
	if err := os.WriteFile(pins, solverPins, 0o644); err != nil {
		return err
	}
	if err := runQuietly(
		ctx,
		filepath.Join(dir, "bin", "python"),
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
		pins,
	); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".complete"), nil, 0o644)
}

// runQuietly runs a program and returns its output only in the error.
func runQuietly(ctx context.Context, program string, args ...string) error {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, output.String())
	}
	return nil
}
