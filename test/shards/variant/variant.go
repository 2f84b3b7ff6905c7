// Package variant builds variants of Heliostat for tests, with `go build -overlay`: the files of the build alone are
// changed, and those of the source stay as they are. One variant has a wall clock that a test can set. Others lack a
// rule of the protocol of shards, to show that a judge finds what that rule prevents.
package variant

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Change replaces a text in a file. The text must be in the file once.
type Change struct {
	// File is a path in the module, or below GOROOT/src if Standard is set.
	File     string
	Standard bool
	// From is replaced by To. If it is empty, To is a new file.
	From, To string
}

// ClockVariable is the environment variable that names a file with the seconds by which the wall clock of a process is
// wrong. Its monotonic clock is not.
const ClockVariable = "HELIOSTAT_TEST_CLOCK"

// Clock makes time.Now wrong by what ClockVariable says. A goroutine looks into the file every 20 ms; time.Now itself
// may not, because the runtime calls it on its own stack.
var Clock = []Change{
	{Standard: true, File: "time/time.go", From: "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n",
		To: "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tsec += wrongBy.Load()\n"},
	{Standard: true, File: "time/wrongby.go", To: `package time

import (
	"sync/atomic"
	"syscall"
)

var wrongBy atomic.Int64

func init() {
	if file, set := syscall.Getenv("` + ClockVariable + `"); set {
		go follow(file)
	}
}

func follow(file string) {
	for ; ; Sleep(20 * Millisecond) {
		fd, err := syscall.Open(file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		var text [16]byte
		n, _ := syscall.Read(fd, text[:])
		syscall.Close(fd)
		if seconds, err := atoi(text[:max(n, 0)]); err == nil {
			wrongBy.Store(int64(seconds))
		}
	}
}
`},
}

// WithoutDeadline lets a shard write until it reads that another has the Lease of the slot.
var WithoutDeadline = []Change{{File: "pkg/nodepool/kube/shards.go",
	From: "if since := s.lease.since(); !s.mine || since.IsZero() || !since.Equal(s.confirmed) {",
	To:   "if s.mine {\n\t\treturn renewDeadline\n\t} else {"}}

// WithoutFence lets a shard write whatever term it finds, and patches test none.
var WithoutFence = []Change{
	{File: "pkg/nodepool/kube/shardright.go", From: "case t.tried && stored != t.from:", To: "case false:"},
	{File: "pkg/nodepool/kube/patch.go", From: `if term == "" || !metadata.Has("annotations") {`,
		To: `if term != "" || !metadata.Has("annotations") {`},
}

// Build builds the program of a package with changes, and returns its path in dir.
func Build(ctx context.Context, dir, name string, changes ...Change) (string, error) {
	overlay, err := write(ctx, filepath.Join(dir, name+"-overlay"), changes)
	if err != nil {
		return "", fmt.Errorf("building the variant %s: %w", name, err)
	}
	root, err := goSays(ctx, "list", "-m", "-f", "{{.Dir}}", "heliostat.dev/heliostat")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-overlay", overlay, "-o", program, "./cmd/autoscaler")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the variant %s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return program, nil
}

// write writes the changed files and the list of them, and returns the path of the list.
func write(ctx context.Context, dir string, changes []Change) (string, error) {
	root, err := goSays(ctx, "list", "-m", "-f", "{{.Dir}}", "heliostat.dev/heliostat")
	if err != nil {
		return "", err
	}
	standard, err := goSays(ctx, "env", "GOROOT")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for i, c := range changes {
		path := filepath.Join(root, c.File)
		if c.Standard {
			path = filepath.Join(standard, "src", c.File)
		}
		text, err := c.apply(path)
		if err != nil {
			return "", err
		}
		changed := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(path)))
		if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
			return "", err
		}
		if _, twice := replace[path]; twice {
			return "", fmt.Errorf("two changes of %s: only one is possible", c.File)
		}
		replace[path] = changed
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o644)
}

// apply returns the changed text of a file.
func (c Change) apply(path string) (string, error) {
	if c.From == "" {
		return c.To, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), c.From); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, want once: the change does not fit any more", c.File, c.From, n)
	}
	return strings.Replace(string(text), c.From, c.To, 1), nil
}

// goSays returns the output of the go command.
func goSays(ctx context.Context, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", arguments...).Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
