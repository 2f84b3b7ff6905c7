package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/test/shards/fleet"
)

// measureKills kills one process after the other, and measures how long its RayClusters are without a decision.
func (p *proof) measureKills(ctx context.Context) error {
	random := rand.New(rand.NewPCG(p.seed, 2))
	for i := range p.kills {
		victim := p.members[random.IntN(len(p.members))]
		// A renewal may be anywhere between two.
		if err := wait(ctx, time.Duration(random.Int64N(int64(time.Second)))); err != nil {
			return err
		}
		took, err := p.measureKill(ctx, victim)
		if err != nil {
			return err
		}
		if len(took) == 0 {
			return fmt.Errorf("kill %d: the process had no RayCluster", i+1)
		}
		p.taken = append(p.taken, took...)
		p.played[kill]++
		fmt.Printf("kill %d: %d RayClusters are decided about again after %.1f to %.1f s\n", i+1, len(took),
			slices.Min(took).Seconds(), slices.Max(took).Seconds())
	}
	return nil
}

// measureKill kills a process and returns, for each of its RayClusters, how long it was until another one decided.
func (p *proof) measureKill(ctx context.Context, victim *member) ([]time.Duration, error) {
	victim.turn.Lock()
	defer victim.turn.Unlock()
	before, err := p.settled(ctx, p.names())
	if err != nil {
		return nil, err
	}
	_, shard, _ := victim.running(false)
	killed := time.Now()
	victim.kill()
	others := slices.DeleteFunc(p.names(), func(name string) bool { return name == shard })
	after, err := p.settled(ctx, others)
	if err != nil {
		return nil, err
	}
	owners := map[string]string{}
	for _, cluster := range after {
		owners[cluster.Name] = cluster.Shard
	}
	var mu sync.Mutex
	var took []time.Duration
	asking, asked := errgroup.WithContext(ctx)
	asking.SetLimit(8)
	for _, cluster := range before {
		if cluster.Shard != shard {
			continue
		}
		asking.Go(func() error {
			at, err := p.firstDecision(asked, cluster.Name, owners[cluster.Name])
			if err == nil && at.Before(killed) {
				err = fmt.Errorf("%s was decided about at %s, before the kill at %s", cluster.Name, at, killed)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, at.Sub(killed))
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	return took, victim.start(ctx)
}

// firstDecision returns when the shard that decides about a RayCluster now did so for the first time.
func (p *proof) firstDecision(ctx context.Context, name, owner string) (time.Time, error) {
	var history apiv1.HistoryList
	path := "/v1/namespaces/" + fleet.Namespace + "/rayclusters/" + name + "/history"
	if err := getFrom(ctx, p.urlOf(owner), path, &history); err != nil {
		return time.Time{}, err
	}
	if len(history.Items) == 0 {
		return time.Time{}, fmt.Errorf("%s has no decision", name)
	}
	first := slices.MinFunc(history.Items, func(a, b apiv1.HistoryEntry) int { return a.At.Compare(b.At) })
	return first.At, nil
}

// settled waits until every RayCluster has a decision of one of the named shards, and each of them has a RayCluster.
func (p *proof) settled(ctx context.Context, shards []string) ([]apiv1.ClusterSummary, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		list, why := p.all(ctx, shards)
		if why == nil {
			why = p.divided(list, shards)
		}
		if why == nil {
			return list, nil
		}
		if err := wait(ctx, 250*time.Millisecond); err != nil {
			return nil, fmt.Errorf("waiting until all RayClusters have decisions: %w: %w", err, why)
		}
	}
}

// all returns the RayClusters of all named shards.
func (p *proof) all(ctx context.Context, shards []string) (all []apiv1.ClusterSummary, err error) {
	for _, shard := range shards {
		list, err := own(ctx, p.urlOf(shard))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// divided returns why a list does not show that the shards divide all RayClusters.
func (p *proof) divided(list []apiv1.ClusterSummary, shards []string) error {
	of := map[string]int{}
	for _, cluster := range list {
		if cluster.LastCycle == nil || !slices.Contains(shards, cluster.Shard) {
			return fmt.Errorf("%s has no decision of %v: %+v", cluster.Name, shards, cluster)
		}
		of[cluster.Shard]++
	}
	if len(list) != p.fleet.Size() || len(of) != len(shards) {
		return fmt.Errorf("%d RayClusters of %d have decisions, of shards %v", len(list), p.fleet.Size(), of)
	}
	return nil
}

// urlOf returns where a shard answers.
func (p *proof) urlOf(shard string) string {
	for _, m := range p.members {
		if _, name, url := m.running(false); name == shard {
			return url
		}
	}
	return ""
}

// own returns the RayClusters that a process itself decides about. Without authentication, processes do not ask each
// other, so this asks each as they would do.
func own(ctx context.Context, url string) ([]apiv1.ClusterSummary, error) {
	var list apiv1.ClusterList
	err := getFrom(ctx, url, "/v1/rayclusters", &list)
	return list.Items, err
}

var client = &http.Client{Timeout: 10 * time.Second}

func getFrom(ctx context.Context, url, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-Heliostat-Passed-On", "1") // a call of another replica
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
