package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// killAll kills every process of a container by the ID in its environment. It repeats until none is left, because a
// process can start another one meanwhile.
func killAll(id string) {
	for range 100 {
		pids := processesOf(id)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process can have ended already
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// descendants lists the processes whose chain of parents leads to pid.
func descendants(pid int) []int {
	children := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// The format is: pid (name) state ppid … The name can contain any character, parentheses too.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			children[parent] = append(children[parent], child)
		}
	}
	var found []int
	for next := children[pid]; len(next) > 0; next = next[1:] {
		found = append(found, next[0])
		next = append(next, children[next[0]]...)
	}
	return found
}

// processesOf lists the processes that started with the container's ID in their environment. Zombies have no
// environment.
func processesOf(id string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	wanted := []byte("\x00" + containerID + "=" + id + "\x00")
	var pids []int
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), wanted) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
