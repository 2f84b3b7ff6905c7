package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

// Karpenter removes a machine that is not needed after consolidateAfter, and any after expireAfter. Work takes 22 s at
// most, so that a machine that has expired goes soon.
const (
	consolidateAfter = "10s"
	expireAfter      = "2m"
	// lastMachine is how long after the last worker its machine may be there: Karpenter looks every 10 s, validates for
	// 15 s and drains for 5 s, and a machine may have been launched just before.
	lastMachine = 2 * time.Minute
)

// machines says where the workers run: on the dev cluster's own nodes, or on machines of Karpenter.
type machines struct {
	karpenter, protect bool
}

// machinesFromEnv reads KARPENTER and PROTECT.
func machinesFromEnv() machines {
	return machines{karpenter: os.Getenv("KARPENTER") != "", protect: os.Getenv("PROTECT") != "off"}
}

// rig returns the dev cluster's options.
func (m machines) rig() rig.Options {
	options := rig.Options{Out: os.Stdout}
	if !m.karpenter {
		return options
	}
	options.AdoptNodes = true
	options.Nodes = []nodeagent.NodeSpec{{Name: "heads", Labels: map[string]string{"heads": "yes"},
		Capacity: map[string]string{"cpu": "64", "memory": "64Gi"}}}
	for i, price := range []float64{1, 1.8} {
		n := fmt.Sprint(i + 1)
		options.InstanceTypes = append(options.InstanceTypes,
			devcluster.InstanceType{Name: "gpu-" + n, Resources: map[string]string{
				"cpu":            "8",
				"memory":         "8Gi",
				"nvidia.com/gpu": n,
			}, Offers: []devcluster.Offer{{Price: price}, {CapacityType: "spot", Price: price / 2}}},
			devcluster.InstanceType{Name: "cpu-" + n, Resources: map[string]string{"cpu": "8",
				"memory": fmt.Sprintf("%dMi", 300*(i+1))}, Price: price / 10})
	}
	return options
}

// prepare creates the NodePools, one for each group.
func (m machines) prepare(ctx context.Context, r *rig.Rig) error {
	if !m.karpenter {
		return nil
	}
	errs := []error{r.Cluster.AddNodeClass(ctx, "machine", "3s")}
	for _, group := range []string{cpuGroup, gpuGroup} {
		errs = append(errs, r.Cluster.AddNodePool(ctx, devcluster.NodePool{
			Name:             group,
			Class:            "machine",
			Types:            []string{group + "-1", group + "-2"},
			CapacityTypes:    []string{"spot", "on-demand"},
			Labels:           map[string]string{"pool": group},
			ConsolidateAfter: consolidateAfter,
			ExpireAfter:      expireAfter,
		}))
	}
	return errors.Join(errs...)
}

// startTime is how long the start of a worker takes that was launched just before the end: a replacement of one whose
// machine went.
func (m machines) startTime() time.Duration {
	if m.karpenter {
		return 45 * time.Second
	}
	return 0
}

// flags are those of serve.
func (m machines) flags() []string {
	if !m.karpenter {
		return nil
	}
	return []string{fmt.Sprintf("--protect-busy=%t", m.protect)}
}

// cluster is the RayCluster of the work, whose groups are on the NodePools of the same names.
func (m machines) cluster() rig.Cluster {
	made := cluster()
	if !m.karpenter {
		return made
	}
	made.NoTolerations, made.HeadNodes = true, map[string]string{"heads": "yes"}
	for i := range made.Groups {
		made.Groups[i].NodeSelector = map[string]string{"pool": made.Groups[i].Name}
	}
	return made
}

// report prints what happened to the machines, and waits for the end of the last one.
func (m machines) report(ctx context.Context, journal *rig.Journal) error {
	if !m.karpenter {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lastMachine)
	defer cancel()
	began := time.Now()
	err := journal.Wait(ctx, "the end of all machines", func(facts []rig.Fact) bool {
		return machinesAt(facts, rig.MachineLaunched) == machinesAt(facts, rig.MachineGone)
	})
	facts := journal.Facts()
	fmt.Printf("  %-24s  %v\n", "machines launched", machinesAt(facts, rig.MachineLaunched))
	fmt.Printf("  %-24s  %v\n", "machines gone", machinesAt(facts, rig.MachineGone))
	fmt.Printf("  %-24s  %v\n", "… with workers on them", busyMachines(facts))
	fmt.Printf("  %-24s  %.1fs\n", "last machine gone after", time.Since(began).Seconds())
	if machinesAt(facts, rig.MachineLaunched) == 0 {
		err = errors.Join(err, errors.New("no machine was ever launched, so nothing was tested"))
	}
	return err
}

// machinesAt counts the machines that have reached a stage.
func machinesAt(facts []rig.Fact, stage rig.Stage) int {
	reached := map[string]bool{}
	for _, f := range facts {
		if f.Stage == stage {
			reached[f.Machine] = true
		}
	}
	return len(reached)
}

// busyMachines counts the machines that Karpenter began to remove while a worker that had work was alive on them.
func busyMachines(facts []rig.Fact) int {
	node, on := map[string]string{}, map[string]string{} // node → machine, pod → machine
	busy := map[string]bool{}                            // pods with work
	removed := map[string]bool{}
	for _, f := range facts {
		switch f.Stage {
		case rig.MachineReady:
			node["on "+f.Detail[len("node "):]] = f.Machine
		case rig.Scheduled:
			on[f.Pod] = node[f.Detail]
		case rig.NodeBusy:
			busy[f.Pod] = true
		case rig.NodeIdle, rig.PodGone:
			delete(busy, f.Pod)
		case rig.MachineLeaving:
			for pod := range busy {
				removed[f.Machine] = removed[f.Machine] || on[pod] == f.Machine
			}
		}
	}
	count := 0
	for _, was := range removed {
		if was {
			count++
		}
	}
	return count
}
