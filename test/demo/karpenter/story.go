package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

// machines is the first chapter: work without a machine gets machines, and its workers are guarded before they work.
func (d *demo) machines(ctx context.Context) error {
	d.narrator.chapter("Two tasks need a GPU each, and there is no machine with one",
		"Heliostat raises the group, Karpenter launches the cheapest machines that fit, Ray joins. Workers are guarded",
		"(karpenter.sh/do-not-disrupt) before work gets there.")
	for _, id := range []string{"train", "evaluate"} {
		if err := d.task(ctx, id, 0); err != nil {
			return err
		}
	}
	for _, id := range []string{"train", "evaluate"} {
		if _, err := d.event(ctx, id, "running"); err != nil {
			return err
		}
	}
	for _, pod := range rig.Pods(d.journal.Facts(), group) {
		if err := d.reaches(ctx, pod, rig.Guarded); err != nil {
			return err
		}
	}
	return nil
}

// idle is the second chapter: a worker without work loses its guard and goes, and Karpenter takes the machine back.
func (d *demo) idle(ctx context.Context) error {
	d.narrator.chapter(
		"One task ends: its machine goes, and the other one is left alone",
		"The idle worker loses its guard, Heliostat removes it after 10 s, and Karpenter takes the machine.",
	)
	pod, err := d.podOf(ctx, "evaluate")
	if err != nil {
		return err
	}
	if err := d.driver.Do(rig.Command{Do: "release", ID: "evaluate"}); err != nil {
		return err
	}
	for _, stage := range []rig.Stage{rig.NodeIdle, rig.Unguarded, rig.PodGone} {
		if err := d.reaches(ctx, pod, stage); err != nil {
			return err
		}
	}
	d.narrator.say("the machine is empty: Karpenter leaves it alone for " + consolidateAfter +
		" (consolidateAfter), looks every 10 s, and checks again 15 s later")
	return d.wait(ctx, "the end of the empty machine", func(facts []rig.Fact) bool {
		return slices.ContainsFunc(facts, func(f rig.Fact) bool { return f.Stage == rig.MachineGone })
	})
}

// reclaimed is the third chapter: the machine under a running task is taken away.
func (d *demo) reclaimed(ctx context.Context) error {
	d.narrator.chapter(
		"The provider reclaims the machine of a running task",
		"Ray gets no new work there (DrainNode), a replacement is launched at once, and the guard holds the machine",
		"until the task is done. The task has max_retries=0 and still 45 s to run.",
	)
	if err := d.driver.Do(rig.Command{Do: "release", ID: "train"}); err != nil {
		return err
	}
	if err := d.task(ctx, "checkpoint", 45); err != nil {
		return err
	}
	old, err := d.podOf(ctx, "checkpoint")
	if err != nil {
		return err
	}
	if _, err := d.rig.DeleteNodeClaim(ctx, namespace, old); err != nil {
		return err
	}
	deleted := time.Now()
	d.narrator.say("the NodeClaim of the task's machine is deleted")
	replacement, err := d.createdAfter(ctx, deleted)
	if err != nil {
		return err
	}
	d.narrator.say("worker " + short(replacement) + " is the replacement of " + short(old))
	if err := d.reaches(ctx, old, rig.Drained); err != nil {
		return err
	}
	if err := d.task(ctx, "next", 1); err != nil {
		return err
	}
	done, err := d.event(ctx, "checkpoint", "done")
	if err != nil {
		return err
	}
	d.narrator.say("the task is done, on the machine that goes: " + short(done.Pod))
	next, err := d.event(ctx, "next", "done")
	if err != nil {
		return err
	}
	if err := d.reaches(ctx, old, rig.PodGone); err != nil {
		return err
	}
	return d.verify(old, done, next.Pod)
}

// verify says what did not happen as it should.
func (d *demo) verify(old string, done rig.Event, next string) error {
	if problems := d.driver.Unserved(); len(problems) > 0 {
		return fmt.Errorf("work was not done exactly once: %v", problems)
	}
	if done.Pod != old || next == old {
		return fmt.Errorf(
			"the task ended on %s, and the next one ran on %s; want %s, and another one",
			done.Pod,
			next,
			old,
		)
	}
	facts := d.journal.Facts()
	if at, ok := rig.OfPod(facts, old, rig.Drained); !ok || at.After(done.At) {
		return fmt.Errorf("worker %s was not drained before its task was done", old)
	}
	if at, ok := rig.OfPod(facts, next, rig.NodeAlive); !ok || at.After(done.At) {
		return fmt.Errorf("the replacement, worker %s, had not joined when the task was done", next)
	}
	return nil
}

// createdAfter waits for the first worker that is created after a time.
func (d *demo) createdAfter(ctx context.Context, after time.Time) (pod string, err error) {
	err = d.wait(ctx, "a replacement", func(facts []rig.Fact) bool {
		f, ok := rig.First(facts, func(f rig.Fact) bool { return f.Stage == rig.PodCreated && f.At.After(after) })
		pod = f.Pod
		return ok
	})
	return pod, err
}

// task submits a task with one GPU that Ray does not retry. Zero seconds mean until it is released.
func (d *demo) task(ctx context.Context, id string, seconds float64) error {
	if err := d.driver.Do(rig.Command{Do: "task", ID: id, GPUs: 1, Seconds: seconds}); err != nil {
		return err
	}
	_, err := d.event(ctx, id, "submitted")
	d.narrator.say("task " + id + " is submitted")
	return err
}

func (d *demo) event(ctx context.Context, id, event string) (rig.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.driver.Wait(ctx, id, event)
}

// podOf returns the pod on which a task runs.
func (d *demo) podOf(ctx context.Context, id string) (string, error) {
	running, err := d.event(ctx, id, "running")
	return running.Pod, err
}

// reaches waits until a pod has reached a stage.
func (d *demo) reaches(ctx context.Context, pod string, stage rig.Stage) error {
	return d.wait(ctx, fmt.Sprintf("worker %s to be %s", pod, stage), func(facts []rig.Fact) bool {
		_, ok := rig.OfPod(facts, pod, stage)
		return ok
	})
}

func (d *demo) wait(ctx context.Context, what string, done func([]rig.Fact) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.journal.Wait(ctx, what, done)
}
