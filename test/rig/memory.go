package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// MemoryVariable is the environment variable that limits the memory of each `autoscaler serve` of a rig, as the chart's
// `resources.limits.memory` does: a Kubernetes quantity such as 1Gi. A cgroup enforces it if this process may create
// one; otherwise GOMEMLIMIT alone does.
const MemoryVariable = "HELIOSTAT_TEST_MEMORY"

// memoryLimit is the cgroup of one process.
type memoryLimit struct {
	bytes int64
	// dir is the cgroup's directory, empty if this process may not create one.
	dir string
	// refused is the reason why there is no cgroup.
	refused error
}

// newMemoryLimit reads MemoryVariable and creates the cgroup. It returns nil if no limit is set.
func newMemoryLimit() (*memoryLimit, error) {
	text := os.Getenv(MemoryVariable)
	if text == "" {
		return nil, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Value() < 16<<20 {
		return nil, fmt.Errorf("%s is %q, want a quantity of at least 16Mi, such as 1Gi", MemoryVariable, text)
	}
	m := &memoryLimit{bytes: quantity.Value()}
	m.refused = m.create()
	return m, nil
}

// create creates a cgroup, version 1 or 2, below that of this process.
func (m *memoryLimit) create() error {
	of, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	root, file := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err == nil {
		root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	}
	dir, err := os.MkdirTemp(filepath.Join(root, memoryPath(string(of))), "heliostat-")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(m.bytes, 10)), 0); err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	m.dir = dir
	return nil
}

// memoryPath returns the path of a process's memory cgroup from its /proc/PID/cgroup.
func memoryPath(text string) string {
	unified := "/"
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) < 3:
		case fields[1] == "memory":
			return fields[2]
		case fields[1] == "":
			unified = fields[2]
		}
	}
	return unified
}

// apply makes a command start inside the cgroup. Without a cgroup, only the Go runtime enforces the limit.
func (m *memoryLimit) apply(cmd *exec.Cmd) {
	if m == nil {
		return
	}
	if m.dir == "" {
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", m.bytes/10*9))
		return
	}
	// The shell enters the cgroup before it execs the program, so the cgroup accounts for all of the program's memory.
	const enter = `echo $$ > "$0/cgroup.procs" && exec "$@"`
	cmd.Args = append([]string{"sh", "-c", enter, m.dir, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

// String describes the limit.
func (m *memoryLimit) String() string {
	if m.dir == "" {
		return fmt.Sprintf("rig: GOMEMLIMIT is 90 %% of %d MiB; there is no cgroup: %v", m.bytes>>20, m.refused)
	}
	return fmt.Sprintf("rig: the cgroup %s limits the memory to %d MiB", m.dir, m.bytes>>20)
}

// end removes the cgroup after the process has exited. It returns an error if the kernel killed the process because it
// ran out of memory.
func (m *memoryLimit) end() error {
	if m == nil || m.dir == "" {
		return nil
	}
	killed := 0
	for _, file := range []string{"memory.oom_control", "memory.events"} {
		text, err := os.ReadFile(filepath.Join(m.dir, file))
		if err != nil {
			continue // belongs to the other cgroup version
		}
		_, rest, _ := strings.Cut(string(text), "oom_kill ")
		if fields := strings.Fields(rest); len(fields) > 0 {
			killed, _ = strconv.Atoi(fields[0])
		}
	}
	err := os.Remove(m.dir)
	if killed > 0 {
		killed := fmt.Errorf("rig: the kernel killed the process because it exceeded %d MiB of memory", m.bytes>>20)
		err = errors.Join(killed, err)
	}
	return err
}
