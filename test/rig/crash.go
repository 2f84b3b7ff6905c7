package rig

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// FindProcess returns the process whose arguments contain all the given ones, in that order. It returns an error unless
// exactly one process matches.
func FindProcess(arguments ...string) (int, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, fmt.Errorf("finding process %q: %w", arguments, err)
	}
	wanted := []byte(strings.Join(arguments, "\x00") + "\x00")
	var found []int
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(line, wanted) {
			continue // the process has exited, or is another one
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return 0, fmt.Errorf("finding process %q: %w", arguments, err)
		}
		found = append(found, pid)
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("finding process %q: want one, found %d: %v", arguments, len(found), found)
	}
	return found[0], nil
}

// Crash kills the processes of a pod whose command line contains program, as a crash would. KubeRay passes the pod's
// name to every Ray process. Pod names end in random letters, so Crash hits no other pod.
func Crash(pod, program string) error {
	killed := 0
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return fmt.Errorf("crashing %s in pod %s: %w", program, pod, err)
	}
	for _, path := range environments {
		environment, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environment, []byte("RAY_CLOUD_INSTANCE_ID="+pod+"\x00")) {
			continue // the process has exited, or belongs to another user or pod
		}
		command, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err != nil || !bytes.Contains(command, []byte(program)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return fmt.Errorf("crashing %s in pod %s: %w", program, pod, err)
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		return fmt.Errorf("crashing %s in pod %s: no such process", program, pod)
	}
	return nil
}
