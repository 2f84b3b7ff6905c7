package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// starter starts processes on one thread that lives as long as the program. The kernel sends PDEATHSIG when the
// *thread* that started a child exits, and Go may end threads at any time.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// start starts a command. The kernel sends the command its SysProcAttr.Pdeathsig when this program exits.
func start(cmd *exec.Cmd) error {
	errs := make(chan error, 1)
	starter() <- func() { errs <- cmd.Start() }
	return <-errs
}

// Usage is the resource usage of a process at a point in time.
type Usage struct {
	// CPU is the processor time since the start of the process. Resident and Peak are in bytes.
	CPU            time.Duration
	Resident, Peak int64
}

// clockTick is the unit of processor times in /proc, USER_HZ. It is 100 per second on every Linux platform that Go
// supports.
const clockTick = 10 * time.Millisecond

// UsageOf reads the usage of a process from /proc.
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the usage of process %d: %w", pid, err)
	}
	// The second field is the name in parentheses, which may contain any character. Count fields after it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return Usage{}, fmt.Errorf("reading the usage of process %d: stat has %d fields", pid, len(fields))
	}
	var u Usage
	for _, field := range fields[11:13] { // utime, stime
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("reading the usage of process %d: %w", pid, err)
		}
		u.CPU += time.Duration(ticks) * clockTick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the usage of process %d: %w", pid, err)
	}
	u.Resident, u.Peak = kibibytes(string(status), "VmRSS:"), kibibytes(string(status), "VmHWM:")
	return u, nil
}

// kibibytes returns the bytes of one line of /proc/<pid>/status, or 0 if the line is missing.
func kibibytes(status, name string) int64 {
	_, rest, found := strings.Cut(status, name)
	if !found {
		return 0
	}
	n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return n << 10
}

// ChildOf returns the child of a process by the name of its program, or 0 if there is none.
func ChildOf(parent int, program string) int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, rest, _ := strings.Cut(string(text), " (")
		name, rest, _ := strings.Cut(rest, ") ")
		if fields := strings.Fields(rest); name == program && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	return 0
}
