package rewrite

import (
	"bytes"
	"os"
	"path/filepath"
)

// startScript is where a virtual environment of Python has the source of `ray start`, from the directory of its
// programs.
const startScript = "../lib/python3*/site-packages/ray/scripts/scripts.py"

// HasLogMonitorFlag reports whether the Ray whose programs are in a directory has the flag --include-log-monitor of
// `ray start`: Ray 2.52 has it, Ray 2.40 does not. Without a Ray there, it does not.
func HasLogMonitorFlag(programs string) bool {
	if programs == "" {
		return false
	}
	scripts, err := filepath.Glob(filepath.Join(programs, startScript))
	if err != nil || len(scripts) == 0 {
		return false
	}
	source, err := os.ReadFile(scripts[0])
	return err == nil && bytes.Contains(source, []byte(`"--include-log-monitor"`))
}
