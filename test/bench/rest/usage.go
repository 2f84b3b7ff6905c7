package main

import (
	"fmt"
	"os"
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
		if pid := rig.ChildOf(os.Getpid(), program); pid != 0 {
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
