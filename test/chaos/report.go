package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/test/devcluster"
)

// summary says in one line what was judged until now.
func (t *trial) summary() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.judge.Counts()
	return fmt.Sprintf("%d launches, %d reductions, %d workers ended (%d with work: %d with their machine), "+
		"%d writes, peak %d MiB, %d violations", c.Launches, c.Reductions, c.Ends, c.BusyEnds, c.MachineEnds, c.Writes,
		t.most>>20, len(t.judge.Violations()))
}

// report prints the figures of a run.
func (t *trial) report(took time.Duration, rounds int) {
	fmt.Printf("\n%s, %d rounds, seed %d: %s\n", took.Round(time.Second), rounds, t.seed, t.summary())
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(t.played)) {
		fmt.Printf("  %-24s %d\n", kind, t.played[kind])
		total += t.played[kind]
	}
	fmt.Printf("  %-24s %d\n", "faults", total)
}

// vacuous returns an error if too little happened for the run to prove something.
func (t *trial) vacuous() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.judge.Counts()
	if c.Launches < 3 || c.Reductions == 0 || c.Ends == 0 || c.Writes < 3 || c.Rests == 0 {
		return fmt.Errorf("too little happened to judge: %+v", c)
	}
	return nil
}

// evidence keeps the facts of the round, and what Heliostat and the operator say, and says where. It is for people: the
// judge does not read what Heliostat says.
func (t *trial) evidence(ctx context.Context) string {
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return fmt.Sprint("keeping the evidence: ", err)
	}
	keep := func(name string, text []byte, read error) {
		err = errors.Join(err, read, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	h := t.heliostat.Load()
	log, read := os.ReadFile(h.Log)
	keep("heliostat.log", log, read)
	log, read = os.ReadFile(filepath.Join(t.Cluster.Logs(), string(devcluster.Operator)+".log"))
	keep("operator.log", log, read)
	t.mu.Lock()
	facts, read := t.history.read()
	t.mu.Unlock()
	keep("history.jsonl", facts, read)
	for _, v := range t.violations() {
		path := "/v1/namespaces/" + t.fleet.Namespace + "/rayclusters/" + v.Cluster
		if strings.HasPrefix(v.Cluster, "ray-") {
			_, text, called := h.Call(ctx, http.MethodGet, path, "")
			keep(v.Cluster+".json", text, called)
		}
	}
	return fmt.Sprintf("the facts, the logs and the answers of the REST API are in %s (errors: %v)", dir, err)
}
