package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

// usage is what the parts of the run have used so far, by program: they share the machine, and what one takes the
// others lack.
func (f *fleet) usage() map[string]rig.Usage {
	pids := map[string]int{"the callers and the simulated heads": os.Getpid()}
	if f.heliostat != nil {
		pids["autoscaler serve"] = f.heliostat.PID()
	}
	for _, program := range []string{"kube-apiserver", "etcd"} {
		if pid := childOf(os.Getpid(), program); pid != 0 {
			pids[program] = pid
		}
	}
	used := map[string]rig.Usage{}
	for name, pid := range pids {
		if u, err := rig.UsageOf(pid); err == nil {
			used[name] = u
		}
	}
	return used
}

// childOf finds the child of a process by its program's name; 0 is none.
func childOf(parent int, program string) int {
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

// tellUsage prints what each part has used since before.
func (f *fleet) tellUsage(before map[string]rig.Usage, long time.Duration) {
	fmt.Println()
	after := f.usage()
	for _, name := range []string{"autoscaler serve", "kube-apiserver", "etcd", "the callers and the simulated heads"} {
		if now, there := after[name]; there {
			fmt.Printf("%-42s %3.0f %% of a core; resident %d MiB before, %d MiB after\n", name,
				100*(now.CPU-before[name].CPU).Seconds()/long.Seconds(), before[name].Resident>>20, now.Resident>>20)
		}
	}
}
