// Command shards lets several `autoscaler serve --shards` divide a fleet of simulated RayClusters under faults, and
// judges from the API server's audit log that each RayCluster had one writer at any moment (package terms).
//
// The API server and the wire to the Ray heads are real. The heads, the operator and the kubelets are played (package
// fleet). Each process has a proxy of its own in front of the API server, which can cut it off, and a wall clock that
// the command sets (package variant). Tasks come to random RayClusters all the time, so that all shards write.
//
// First, KILLS (10) processes are killed one after the other without other faults, to measure how long the RayClusters
// of each are without a decision. Then FAULTS (200) faults of a seeded schedule happen, several at the same time. Then
// the log is judged.
//
// Environment: FLEET (1000), SHARDS (3) processes, KILLS, FAULTS, SEED (of the clock), DEMAND (8) tasks per second.
// MUTANT=1 builds Heliostat without the deadline of writes and without the fence; then the judge must find a broken
// rule.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"heliostat.dev/heliostat/test/rig"
)

func main() { rig.Main(run) }

// settings are the settings of a run.
type settings struct {
	fleet, shards, kills, faults, demand int
	seed                                 uint64
	mutant                               bool
}

// fromEnvironment reads the settings.
func fromEnvironment() (settings, error) {
	s := settings{fleet: 1000, shards: 3, kills: 10, faults: 200, demand: 8, seed: uint64(time.Now().UnixNano())}
	for _, number := range []struct {
		name        string
		to          *int
		least, most int
	}{
		{"FLEET", &s.fleet, 1, 10_000}, {"SHARDS", &s.shards, 2, 9}, {"KILLS", &s.kills, 0, 1000},
		{"FAULTS", &s.faults, 0, 10_000}, {"DEMAND", &s.demand, 1, 1000},
	} {
		value := os.Getenv(number.name)
		if value == "" {
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < number.least || n > number.most {
			return s, fmt.Errorf("%s is %q, want a number from %d to %d", number.name, value, number.least, number.most)
		}
		*number.to = n
	}
	var err error
	if value := os.Getenv("SEED"); value != "" {
		if s.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return s, fmt.Errorf("reading SEED: %w", err)
		}
	}
	switch value := os.Getenv("MUTANT"); value {
	case "", "0":
	case "1":
		s.mutant = true
	default:
		return s, fmt.Errorf("MUTANT is %q, want 0 or 1", value)
	}
	return s, nil
}

func run(ctx context.Context) error {
	s, err := fromEnvironment()
	if err != nil {
		return err
	}
	return prove(ctx, s)
}

// prove runs the proof on a dev cluster of its own.
func prove(ctx context.Context, s settings) (err error) {
	r, err := rig.Start(ctx, rig.Options{Out: os.Stderr, ControlPlaneOnly: true, AuditRules: []auditv1.PolicyRule{{
		Level: auditv1.LevelRequestResponse, Verbs: []string{"patch"}, OmitManagedFields: new(true),
		Resources: []auditv1.GroupResources{{Group: "ray.io", Resources: []string{"rayclusters"}}},
	}}})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, r.Stop(ctx))
	}()
	fmt.Printf("%d shards divide %d RayClusters: %d kills, then %d faults of seed %d\n", s.shards, s.fleet, s.kills,
		s.faults, s.seed)
	p := &proof{Rig: r, settings: s, played: map[kind]int{}}
	defer p.close()
	if err := p.start(ctx); err != nil {
		return err
	}
	return errors.Join(p.run(ctx), p.mishaps())
}
