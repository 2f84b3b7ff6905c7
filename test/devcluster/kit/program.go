package kit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Program is a program of this repository.
type Program struct {
	// Title is its name in messages.
	Title string
	// Dir is a directory of its module, Package its package as seen from there, Output the path of the finished
	// program.
	Dir, Package, Output string
}

// estimate is the time of a first build on two cores after a control plane was built, whose packages it shares.
func (Program) estimate() time.Duration { return 45 * time.Second }

// build makes the program with the flags of the caller's environment: the same flags make the same packages, which the
// Go build cache then has.
func (p Program) build(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(p.Output), 0o755); err != nil {
		return fmt.Errorf("building %s: %w", p.Title, err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", p.Output, p.Package)
	cmd.Dir = p.Dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("building %s: %w: %s", p.Title, err, lastLines(output.String(), 10))
	}
	return nil
}

// splitPrograms separates programs without a build from those that may have changed since theirs.
func splitPrograms(programs []Program) (fresh, again []Program) {
	for _, p := range programs {
		if exists(p.Output) {
			again = append(again, p)
		} else {
			fresh = append(fresh, p)
		}
	}
	return fresh, again
}
