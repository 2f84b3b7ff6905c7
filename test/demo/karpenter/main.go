// Command karpenter shows Heliostat beside the real Karpenter on one machine: work gets machines, busy workers keep
// theirs, idle machines go, and a machine that is reclaimed is replaced while its task finishes. Every line is read
// from its source when it happens: the Kubernetes API, Ray's GCS, the work itself.
//
// Karpenter's machines are processes here, and the cloud is its kwok provider. With DEMO_EXIT=1 it exits after the
// story, with status 0 only if every step happened; otherwise it keeps the cluster until Ctrl-C.
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

const (
	namespace, name = "ray", "demo"
	group, pool     = "gpu", "spot"
	// consolidateAfter is how long Karpenter leaves an empty machine alone.
	consolidateAfter = "10s"
	// patience is how long a step may take on a busy machine.
	patience = 3 * time.Minute
)

func main() { rig.Main(run) }

func run(ctx context.Context) (err error) {
	d := &demo{narrator: newNarrator(os.Stdout)}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, d.close(ctx))
	}()
	if err := d.prepare(ctx); err != nil {
		return err
	}
	for _, chapter := range []func(context.Context) error{d.machines, d.idle, d.reclaimed} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	d.narrator.end()
	if os.Getenv("DEMO_EXIT") == "" {
		d.narrator.stays(d.rig.Cluster.Kubeconfig(), d.heliostat.URL)
		<-ctx.Done()
	}
	return nil
}

// demo is what the story needs, and what must be ended after it.
type demo struct {
	narrator  *narrator
	rig       *rig.Rig
	heliostat *rig.Heliostat
	driver    *rig.Driver
	journal   *rig.Journal
	stop      context.CancelFunc // ends the observers
}

// prepare starts the dev cluster, Heliostat, a NodePool of spot machines, a RayCluster without workers, and a driver.
func (d *demo) prepare(ctx context.Context) (err error) {
	if d.rig, err = rig.Start(ctx, rig.Options{
		Out: os.Stdout, Name: fmt.Sprintf("demo-karpenter-%d", os.Getpid()), AdoptNodes: true,
		Nodes: []nodeagent.NodeSpec{{Name: "heads", Labels: map[string]string{"heads": "yes"},
			Capacity: map[string]string{"cpu": "64", "memory": "64Gi"}}},
		InstanceTypes: []devcluster.InstanceType{{Name: "l4.xlarge",
			Resources: map[string]string{"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"},
			Offers: []devcluster.Offer{
				{Price: 1.2}, {CapacityType: "spot", Price: 0.5}, {CapacityType: "spot", Zone: "zone-b", Price: 0.4},
			}}},
	}); err != nil {
		return err
	}
	if err := errors.Join(rig.InstallCRDs(ctx, d.rig.Dynamic), d.rig.Cluster.AddNodeClass(ctx, "machine", "5s"),
		d.rig.Cluster.AddNodePool(ctx, devcluster.NodePool{Name: pool, Class: "machine", Types: []string{"l4.xlarge"},
			CapacityTypes: []string{"spot", "on-demand"}, Labels: map[string]string{"pool": pool},
			ConsolidateAfter: consolidateAfter})); err != nil {
		return err
	}
	if d.heliostat, err = d.rig.Serve(ctx, "--protect-busy"); err != nil {
		return err
	}
	d.journal = rig.NewJournal(d.narrator.fact)
	observing, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = stop
	d.rig.Observe(observing, namespace, name, d.journal)
	d.rig.ObserveMachines(observing, namespace, name, d.journal)
	if err := d.rig.Create(ctx, cluster().Manifest()); err != nil {
		return err
	}
	if err := d.rig.HeadAlive(ctx, namespace, name); err != nil {
		return err
	}
	if d.driver, err = d.rig.Driver(ctx, namespace, name, "driver"); err != nil {
		return err
	}
	go rig.FollowDriver(observing, d.driver, d.journal)
	return nil
}

func cluster() rig.Cluster {
	return rig.Cluster{Namespace: namespace, Name: name, IdleSeconds: 10, NoTolerations: true,
		HeadNodes: map[string]string{"heads": "yes"},
		Groups: []rig.Group{{Name: group, Max: 3, NodeSelector: map[string]string{"pool": pool},
			Params: map[string]string{"num-cpus": "0"}, Devices: map[string]int64{"nvidia.com/gpu": 1}}}}
}

// close ends everything that prepare started, also after a start that failed half-way.
func (d *demo) close(ctx context.Context) error {
	if d.stop != nil {
		d.stop()
	}
	if d.rig == nil {
		return nil
	}
	if d.driver != nil {
		d.driver.Kill()
	}
	if d.heliostat != nil {
		d.heliostat.Stop(ctx)
	}
	return d.rig.Stop(ctx)
}
