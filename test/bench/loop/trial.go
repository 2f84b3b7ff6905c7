package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/rig"
)

// statePoll is how often a trial reads the GCS while it waits for its demand to show. A reading takes the head about
// 1 ms, so this slows it down little and adds 3 ms to the first part on average.
const statePoll = 5 * time.Millisecond

// patience bounds one trial. Ray's own autoscaler needs up to 7 s for the patch, and a minute to take a worker away.
const patience = 3 * time.Minute

// kind is a way to ask.
type kind struct {
	name    string
	command rig.Command
	// workers is how many the demand needs.
	workers int64
}

var (
	task = kind{"task", rig.Command{Do: "task", GPUs: 1}, 1}
	gang = kind{"placement group", rig.Command{Do: "group", Bundles: []map[string]float64{{"GPU": 1}, {"GPU": 1}}}, 2}
)

// bench is one RayCluster on which trials run.
type bench struct {
	rig     *rig.Rig
	cluster rig.Cluster
	driver  *rig.Driver
	gcs     *gcs.Client
	journal *rig.Journal
	stop    context.CancelFunc
	trials  int
}

// newBench creates the cluster and waits until its head is alive and a driver connected.
func newBench(ctx context.Context, r *rig.Rig, cluster rig.Cluster) (*bench, error) {
	if err := r.Create(ctx, cluster.Manifest()); err != nil {
		return nil, err
	}
	if err := r.HeadAlive(ctx, cluster.Namespace, cluster.Name); err != nil {
		return nil, err
	}
	driver, err := r.Driver(ctx, cluster.Namespace, cluster.Name, cluster.Name)
	if err != nil {
		return nil, err
	}
	client, err := r.GCS(ctx, cluster.Namespace, cluster.Name)
	if err != nil {
		driver.Kill()
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	b := &bench{rig: r, cluster: cluster, driver: driver, gcs: client, journal: rig.NewJournal(nil), stop: stop}
	r.ObserveKubernetes(watching, cluster.Namespace, cluster.Name, b.journal)
	return b, nil
}

func (b *bench) close() {
	b.stop()
	b.driver.Kill()
	b.gcs.Close()
}

// sample is one trial: the two parts of the way from .remote() to the patch.
type sample struct {
	visible, patched time.Duration // since .remote()
}

// table runs trials of each kind and prints what they took.
func (b *bench) table(ctx context.Context, trials int, kinds ...kind) error {
	fmt.Printf("  %-16s  %-22s  %8s  %8s  %8s  %8s\n", "demand", "part", "p50", "p99", "max", "min")
	for _, k := range kinds {
		var samples []sample
		for range trials {
			s, err := b.trial(ctx, k)
			if err != nil {
				return fmt.Errorf("trial %d of a %s: %w", len(samples)+1, k.name, err)
			}
			samples = append(samples, s)
		}
		row(k.name, ".remote() → visible", samples, func(s sample) time.Duration { return s.visible })
		row("", "visible → patched", samples, func(s sample) time.Duration { return max(0, s.patched-s.visible) })
		row("", ".remote() → patched", samples, func(s sample) time.Duration { return s.patched })
	}
	return nil
}

// trial asks at a random moment and waits until the patch is seen; then everything is as it was before.
func (b *bench) trial(ctx context.Context, k kind) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := sleep(ctx, time.Second+rand.N(3*time.Second)); err != nil {
		return sample{}, err
	}
	b.trials++
	command := k.command
	command.ID = fmt.Sprintf("%s-%d", command.Do, b.trials)
	before := len(b.journal.Facts())
	if err := b.driver.Do(command); err != nil {
		return sample{}, err
	}
	asked, err := b.driver.Wait(ctx, command.ID, "submitted")
	if err != nil {
		return sample{}, err
	}
	visible, err := b.visible(ctx)
	if err != nil {
		return sample{}, err
	}
	patched := func(f rig.Fact) bool { return f.Stage == rig.GroupPatched && f.To > f.From }
	err = b.journal.Wait(ctx, "the patch", func(facts []rig.Fact) bool {
		_, ok := rig.First(facts[before:], patched)
		return ok
	})
	if err != nil {
		return sample{}, err
	}
	patch, _ := rig.First(b.journal.Facts()[before:], patched)
	if patch.To-patch.From != k.workers {
		return sample{}, fmt.Errorf("replicas went %s, %d more were needed", patch.Detail, k.workers)
	}
	return sample{visible: visible.Sub(asked.At), patched: patch.At.Sub(asked.At)}, b.reset(ctx, command.ID)
}

// visible returns when the GCS first reported pending demand.
func (b *bench) visible(ctx context.Context) (time.Time, error) {
	for {
		state, err := b.gcs.State(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if rig.Describe(state.Demand) != "" {
			return time.Now(), nil
		}
		if err := sleep(ctx, statePoll); err != nil {
			return time.Time{}, fmt.Errorf("waiting for the demand to show: %w", err)
		}
	}
}

// reset takes the demand back, then the workers, and waits until both are gone.
func (b *bench) reset(ctx context.Context, id string) error {
	if err := b.driver.Do(rig.Command{Do: "release", ID: id}); err != nil {
		return err
	}
	for {
		state, err := b.gcs.State(ctx)
		if err != nil {
			return err
		}
		if rig.Describe(state.Demand) == "" {
			break
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for the demand to go: %w", err)
		}
	}
	if b.cluster.InTree {
		// its own autoscaler does that, and launches nothing for a long time after somebody else did
		return b.allGone(ctx)
	}
	return b.removeWorkers(ctx)
}

// removeWorkers does by hand what Heliostat would do after the idle time-out: one patch with the names.
func (b *bench) removeWorkers(ctx context.Context) error {
	// The operator may still be about to create the last pod.
	clusters := b.rig.Dynamic.Resource(rig.RayClusters).Namespace(b.cluster.Namespace)
	object, err := clusters.Get(ctx, b.cluster.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the RayCluster: %w", err)
	}
	want := int(rig.Replicas(object)["gpu"])
	there := func(facts []rig.Fact) bool { return len(rig.Living(facts, "")) >= want }
	if err := b.journal.Wait(ctx, "the workers", there); err != nil {
		return err
	}
	names := rig.Living(b.journal.Facts(), "")
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 0},
		{
			"op":    "add",
			"path":  "/spec/workerGroupSpecs/0/scaleStrategy",
			"value": map[string]any{"workersToDelete": names},
		},
	})
	if err != nil {
		return fmt.Errorf("removing workers: %w", err)
	}
	_, err = clusters.Patch(ctx, b.cluster.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("removing workers: %w", err)
	}
	return b.allGone(ctx)
}

func (b *bench) allGone(ctx context.Context) error {
	return b.journal.Wait(ctx, "the workers to go",
		func(facts []rig.Fact) bool { return len(rig.Living(facts, "")) == 0 })
}

// row prints one part of all trials.
func row(name, part string, samples []sample, of func(sample) time.Duration) {
	times := make([]time.Duration, len(samples))
	for i, s := range samples {
		times[i] = of(s)
	}
	slices.Sort(times)
	fmt.Printf("  %-16s  %-22s  %7.3fs  %7.3fs  %7.3fs  %7.3fs\n", name, part, percentile(times, 50).Seconds(),
		percentile(times, 99).Seconds(), times[len(times)-1].Seconds(), times[0].Seconds())
}

// percentile returns the smallest time that p percent of the sorted times do not exceed.
func percentile(times []time.Duration, p float64) time.Duration {
	return times[max(0, int(math.Ceil(p/100*float64(len(times))))-1)]
}
