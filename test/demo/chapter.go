package main

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/test/rig"
)

// The RayCluster of the story, as raycluster.yaml says.
const (
	namespace = "ray"
	name      = "demo"
)

//go:embed raycluster.yaml
var rayCluster []byte

// manifest reads raycluster.yaml.
func manifest() (*unstructured.Unstructured, error) {
	cluster := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(rayCluster, &cluster.Object); err != nil {
		return nil, fmt.Errorf("reading raycluster.yaml: %w", err)
	}
	return cluster, nil
}

// patience is how long a chapter may take. A worker needs 6 s on a quiet machine and a minute on a very busy one.
const patience = 3 * time.Minute

// chapter is one way to ask for resources.
type chapter struct {
	title, code string
	// note explains what a reader may wonder about.
	note string
	// ask lists commands to the driver; or post is the body of a REST request.
	ask  []rig.Command
	post string
	// workers are the new workers that this must bring, no fewer and no more, by group.
	workers map[string]int
}

// chapters happen in this order. What they ask for stays, so that each needs new workers.
var chapters = []chapter{
	{
		title:   "A task that needs one GPU",
		code:    "f.options(num_gpus=1).remote()",
		ask:     []rig.Command{{Do: "task", ID: "whole", GPUs: 1}},
		workers: map[string]int{"gpu": 1},
	},
	{
		title:   "Two tasks of half a GPU: one more worker holds both",
		code:    "[f.options(num_gpus=0.5).remote() for _ in range(2)]",
		ask:     []rig.Command{{Do: "task", ID: "half-1", GPUs: 0.5}, {Do: "task", ID: "half-2", GPUs: 0.5}},
		workers: map[string]int{"gpu": 1},
	},
	{
		title: "An actor that wants a MIG slice",
		code:  `Actor.options(num_gpus=1, label_selector={"gpu-slice": "mig-1g.10gb"}).remote()`,
		ask: []rig.Command{
			{Do: "actor", ID: "actor", GPUs: 1, Labels: map[string]string{"gpu-slice": "mig-1g.10gb"}},
		},
		workers: map[string]int{"mig": 1},
	},
	{
		title: "A placement group of three bundles: all or nothing",
		code:  `placement_group([{"GPU": 1}, {"GPU": 1}, {"CPU": 2}])`,
		note: "GPU workers are busy: Heliostat waits 1.5 s before it launches more for the group, " +
			"because Ray may report that one has become free",
		ask: []rig.Command{
			{Do: "group", ID: "gang", Bundles: []map[string]float64{{"GPU": 1}, {"GPU": 1}, {"CPU": 2}}},
		},
		workers: map[string]int{"gpu": 2, "cpu": 1},
	},
	{
		title:   "request_resources over REST: room for two bundles, one of which is there",
		code:    "POST " + rig.RequestPath(namespace, name),
		post:    `{"bundles": [{"CPU": 2}, {"CPU": 2}]}`,
		workers: map[string]int{"cpu": 1},
	},
}

// chapter asks, and returns when what was asked for is served by exactly the workers it should bring.
func (d *demo) chapter(ctx context.Context, c chapter) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before := d.journal.Facts()
	known := len(rig.Pods(before, ""))
	d.narrator.chapter(c)
	if err := d.ask(ctx, c); err != nil {
		return err
	}
	for _, command := range c.ask {
		if err := d.served(ctx, command); err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
	}
	alive := func(facts []rig.Fact) bool {
		pods := rig.Pods(facts, "")[known:]
		for _, pod := range pods {
			if _, ok := rig.OfPod(facts, pod, rig.NodeAlive); !ok {
				return false
			}
		}
		return len(pods) >= c.total()
	}
	seen := func(facts []rig.Fact) bool {
		_, ok := rig.First(facts[len(before):], func(f rig.Fact) bool { return f.Stage == rig.DemandSeen })
		return ok
	}
	if err := d.journal.Wait(ctx, "the demand to be seen", seen); err != nil {
		return fmt.Errorf("%s: %w", c.title, err)
	}
	if err := d.journal.Wait(ctx, fmt.Sprintf("%d new workers", c.total()), alive); err != nil {
		return fmt.Errorf("%s: %w", c.title, err)
	}
	return c.exact(d.journal.Facts(), known)
}

// ask makes the chapter's request.
func (d *demo) ask(ctx context.Context, c chapter) error {
	for _, command := range c.ask {
		if err := d.driver.Do(command); err != nil {
			return err
		}
		asked, err := d.driver.Wait(ctx, command.ID, "submitted")
		if err != nil {
			return err
		}
		d.narrator.asked(asked.At, describe(command))
	}
	if c.post == "" {
		return nil
	}
	d.narrator.asked(time.Now(), c.post)
	status, body, err := d.heliostat.Call(ctx, http.MethodPost, rig.RequestPath(namespace, name), c.post)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("requesting capacity over REST: status %d: %s", status, body)
	}
	return err
}

// served waits until the work runs.
func (d *demo) served(ctx context.Context, c rig.Command) error {
	event := "running"
	if c.Do == "group" {
		event = "placed"
	}
	if _, err := d.driver.Wait(ctx, c.ID, event); err != nil {
		return err
	}
	ran := func(f rig.Fact) bool { return f.Stage == rig.WorkRan && f.Detail == c.ID }
	return d.journal.Wait(ctx, c.ID, func(facts []rig.Fact) bool { _, ok := rig.First(facts, ran); return ok })
}

// exact says whether a chapter brought the workers it should, and no others.
func (c chapter) exact(facts []rig.Fact, known int) error {
	pods := rig.Pods(facts, "")[known:]
	if len(pods) != c.total() {
		return fmt.Errorf("%s: %d workers came, %d are needed", c.title, len(pods), c.total())
	}
	for group, want := range c.workers {
		got := 0
		for _, f := range facts {
			if f.Stage == rig.PodCreated && f.Group == group && slices.Contains(pods, f.Pod) {
				got++
			}
		}
		if got != want {
			return fmt.Errorf("%s: %d workers of group %s came, %d are needed", c.title, got, group, want)
		}
	}
	return nil
}

// requests is the number of requests that the chapter makes.
func (c chapter) requests() int {
	if c.post != "" {
		return len(c.ask) + 1
	}
	return len(c.ask)
}

// total is the number of workers a chapter brings.
func (c chapter) total() int {
	n := 0
	for _, count := range c.workers {
		n += count
	}
	return n
}

// end releases all work and waits until every worker is gone.
func (d *demo) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d.narrator.chapter(
		chapter{
			title: "The work ends, the REST request is cleared",
			code:  "DELETE " + rig.RequestPath(namespace, name),
		},
	)
	for _, c := range chapters {
		for _, command := range c.ask {
			if err := d.driver.Do(rig.Command{Do: "release", ID: command.ID}); err != nil {
				return err
			}
			if _, err := d.driver.Wait(ctx, command.ID, "released"); err != nil {
				return err
			}
		}
	}
	status, body, err := d.heliostat.Call(ctx, http.MethodDelete, rig.RequestPath(namespace, name), "")
	if err != nil {
		return err
	}
	if status >= http.StatusBadRequest {
		return fmt.Errorf("clearing the REST request: status %d: %s", status, body)
	}
	d.narrator.released(time.Now())
	return d.journal.Wait(ctx, "the end of all workers",
		func(facts []rig.Fact) bool { return len(rig.Living(facts, "")) == 0 })
}

// describe writes what a command asks for.
func describe(c rig.Command) string {
	switch c.Do {
	case "task":
		return fmt.Sprintf("task, {GPU %g}", c.GPUs)
	case "actor":
		return fmt.Sprintf("actor, {GPU %g} on gpu-slice=%s", c.GPUs, c.Labels["gpu-slice"])
	}
	return fmt.Sprintf("placement group of %d bundles", len(c.Bundles))
}
