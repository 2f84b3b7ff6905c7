package kit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// packagePath is this package's import path.
const packagePath = "heliostat.dev/heliostat/test/devcluster/kit"

// builder builds parts into bin, one directory for each content hash.
type builder struct {
	source string // the directory with the modules that pin the parts
	bin    string
}

// plan is a part with everything that determines its program.
type plan struct {
	recipe
	version string
	dir     string // where the finished part lies
}

// program returns the path of the part's program.
func (p plan) program() string { return filepath.Join(p.dir, string(p.part)) }

// built reports whether the part is built.
func (p plan) built() bool { return exists(p.program()) }

// title is the part and its version for messages.
func (p plan) title() string { return string(p.part) + " " + p.version }

// newBuilder returns a builder with its results below cache.
func newBuilder(cache string) (*builder, error) {
	source, err := sourceDir()
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(cache, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return nil, fmt.Errorf("creating the cache: %w", err)
	}
	return &builder{source: source, bin: bin}, nil
}

// sourceDir finds the directory above this package's. The caller's own record of it is missing in programs built with
// -trimpath; those can only be run from a directory whose module knows this one.
func sourceDir() (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		if dir := filepath.Dir(filepath.Dir(file)); exists(filepath.Join(dir, "parts", "go.mod")) {
			return dir, nil
		}
	}
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", packagePath).Output()
	if err != nil {
		return "", fmt.Errorf("finding the source of %s: %w", packagePath, withStderr(err))
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// plan works out where a part belongs. The directory's name covers everything that changes the program: the pinned
// modules, the Go release, the platform and the flags.
func (b *builder) plan(part Part, releases map[string]string) (plan, error) {
	r, err := recipeOf(part)
	if err != nil {
		return plan{}, err
	}
	if r, err = b.pinned(r, releases[r.module]); err != nil {
		return plan{}, err
	}
	gomod, err := os.ReadFile(filepath.Join(b.source, r.moduleDir, "go.mod"))
	if err != nil {
		return plan{}, fmt.Errorf("reading the pins of %s: %w", part, err)
	}
	gosum, err := os.ReadFile(filepath.Join(b.source, r.moduleDir, "go.sum"))
	if err != nil {
		return plan{}, fmt.Errorf("reading the pins of %s: %w", part, err)
	}
	version, err := requiredVersion(gomod, r.module)
	if err != nil {
		return plan{}, fmt.Errorf("reading the pins of %s: %w", part, err)
	}
	release, err := goVersion()
	if err != nil {
		return plan{}, err
	}
	own, err := b.ownSource(r)
	if err != nil {
		return plan{}, fmt.Errorf("reading the source of %s: %w", part, err)
	}
	hash := sha256.New()
	pieces := []string{string(gomod), string(gosum), release, r.pkg, r.ldflags(version), strings.Join(r.files, " ")}
	for _, piece := range append(pieces, own...) {
		fmt.Fprintf(hash, "%d:%s\n", len(piece), piece)
	}
	name := string(part) + "-" + hex.EncodeToString(hash.Sum(nil))[:12]
	return plan{recipe: r, version: version, dir: filepath.Join(b.bin, name)}, nil
}

// ownSource returns the names and texts of the nested module's own files, in the order of their names.
func (b *builder) ownSource(r recipe) (pieces []string, err error) {
	if r.own == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(b.source, r.moduleDir, r.own))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, filepath.Base(file), string(text))
	}
	if len(pieces) == 0 {
		return nil, fmt.Errorf("no %s in %s", r.own, r.moduleDir)
	}
	return pieces, nil
}

// build builds a part unless it is built. If two processes want the same part, the second one waits.
func (b *builder) build(ctx context.Context, p plan) error {
	lock, err := WaitLock(ctx, p.dir+".lock")
	if err != nil {
		return fmt.Errorf("building %s: %w", p.part, err)
	}
	defer lock.Release()
	if p.built() {
		return nil
	}
	unfinished := p.dir + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("building %s: %w", p.part, err)
	}
	if err := b.compile(ctx, p, unfinished); err != nil {
		return fmt.Errorf("building %s: %w", p.title(), err)
	}
	if err := b.copyFiles(ctx, p, unfinished); err != nil {
		return fmt.Errorf("building %s: copying its files: %w", p.title(), err)
	}
	if err := os.Rename(unfinished, p.dir); err != nil {
		return fmt.Errorf("building %s: %w", p.part, err)
	}
	return nil
}

// compile builds the part's program into dir.
func (b *builder) compile(ctx context.Context, p plan, dir string) error {
	cmd := b.goCommand(ctx, p, "build", "-trimpath", "-ldflags", p.ldflags(p.version), "-o",
		filepath.Join(dir, string(p.part)), p.pkg)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %s", err, lastLines(output.String(), 10))
	}
	return nil
}

// copyFiles copies the part's folders out of its module, so that a start does not need to ask Go where that is.
func (b *builder) copyFiles(ctx context.Context, p plan, dir string) error {
	if len(p.files) == 0 {
		return nil
	}
	out, err := b.goCommand(ctx, p, "list", "-m", "-f", "{{.Dir}}", p.module).Output()
	if err != nil {
		return withStderr(err)
	}
	module := strings.TrimSpace(string(out))
	for _, folder := range p.files {
		if err := copyTree(filepath.Join(dir, folder), filepath.Join(module, folder)); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies a directory with the usual permissions, because those of the module cache forbid removal.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
}

// goCommand prepares a go command in the module that pins a part. Its settings are part of the result, so those of the
// caller's environment that would change it are overruled. With more room for its garbage the compiler works a tenth
// less.
func (b *builder) goCommand(ctx context.Context, p plan, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.source, p.moduleDir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOGC=400",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	return cmd
}

// goVersion returns what `go version` prints: release and platform.
func goVersion() (string, error) {
	out, err := exec.Command("go", "version").Output()
	if err != nil {
		return "", fmt.Errorf("reading the version of go: %w", withStderr(err))
	}
	return strings.TrimSpace(string(out)), nil
}

// withStderr adds a command's standard error to its error.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, lastLines(string(exit.Stderr), 10))
	}
	return err
}

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
