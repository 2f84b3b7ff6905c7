package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// giveBack asks the desk, and runs cycles until one answers.
func (w *world) giveBack(ask giveback.Ask) (giveback.Reservation, error) {
	w.t.Helper()
	if ask.DeadlineSeconds == 0 {
		ask.DeadlineSeconds = 600
	}
	var agreed giveback.Reservation
	answered := make(chan error, 1)
	go func() {
		var err error
		agreed, err = w.kube.desk.Begin(context.Background(), key, ask)
		answered <- err
	}()
	for before := w.kube.cluster.GiveBack; ; {
		w.after(100 * time.Millisecond)
		if w.kube.cluster.GiveBack != before { // the next cycle would carry it out
			err := <-answered
			return agreed, err
		}
		select {
		case err := <-answered:
			return agreed, err
		case <-time.After(time.Millisecond):
		}
	}
}

// newBusyWorld has workers of one GPU that all have tasks.
func newBusyWorld(t *testing.T, workers, least, most int) *world {
	t.Helper()
	w := newWorld(t, Config{}, gpuGroup("gpu", workers, least, most))
	for i := range workers {
		w.busy(w.pod(i))
	}
	w.seconds(5)
	return w
}

func TestBusyWorkersAreGivenBackOnlyByForceAndEndAtTheDeadline(t *testing.T) {
	w := newBusyWorld(t, 3, 0, 8)
	_, err := w.giveBack(giveback.Ask{GPUs: 2, Group: "gpu"})
	if !errors.Is(err, giveback.ErrRefused) || !strings.Contains(err.Error(), "with force all can") ||
		!strings.Contains(err.Error(), w.pod(0)+": tasks run there") {
		t.Fatalf("%v, want a refusal that names the work and force", err)
	}
	dry, err := w.giveBack(giveback.Ask{GPUs: 2, Group: "gpu", Force: true, DryRun: true})
	if err != nil || len(dry.Workers) != 2 {
		t.Fatalf("dry run: %+v, %v", dry, err)
	}
	w.seconds(10)
	w.nothingWritten("a refusal and a dry run")
	got, err := w.giveBack(giveback.Ask{GPUs: 2, Group: "gpu", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	w.seconds(590)
	if len(w.ray.drains) != 2 || len(w.kube.changes) > 0 {
		t.Fatalf("drains %v, changes %+v before the deadline", w.ray.drained(), w.kube.changes)
	}
	w.seconds(15)
	named := []string{got.Workers[0].Pod, got.Workers[1].Pod}
	slices.Sort(named)
	if target := w.lastChange(); target.Replicas != 1 || !slices.Equal(target.WorkersToDelete, named) {
		t.Fatalf("target %+v, want 1 replica without %v", target, named)
	}
	w.operate()
	w.seconds(2)
	w.kube.changes = nil // the names are removed
	w.seconds(60)
	if len(w.ray.drains) != 2 || len(w.kube.changes) > 0 || len(w.kube.cluster.Workers) != 1 {
		t.Errorf("drains %v, changes %+v, %d workers: more than was asked for", w.ray.drained(), w.kube.changes, len(w.kube.cluster.Workers))
	}
	if _, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu", Force: true}); !errors.Is(err, giveback.ErrRefused) {
		t.Errorf("a second reservation: %v, want a refusal", err)
	}
}

// Other work has taken the room since the reservation: the actors would end and wait.
func TestActorsThatHaveNoRoomAtTheDeadlineStay(t *testing.T) {
	one := raydemand.Bundle{raydemand.CPU: raydemand.One}
	w := newBusyWorld(t, 3, 0, 8)
	for i := range 2 {
		n := w.node(w.pod(i))
		n.Available = n.Total.Clone()
		w.place(w.pod(i), raydemand.Resident{Class: "Trainer", Alive: true, Resources: one, Restarts: 3})
	}
	room := w.node(w.pod(2))
	room.Available = raydemand.Bundle{raydemand.CPU: raydemand.Whole(4)}
	w.seconds(5)
	if got, err := w.giveBack(giveback.Ask{GPUs: 2, Group: "gpu"}); err != nil || len(got.Workers) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.seconds(590)
	for i := range 2 {
		w.node(w.pod(i)).Activity = []string{raydemand.ActiveWorkers, "Resource: CPU currently in use."}
	}
	room.Available = raydemand.Bundle{}
	d := w.seconds(60)
	if len(w.kube.changes) > 0 {
		t.Fatalf("changes %+v although no worker has room", w.kube.changes)
	}
	for _, worker := range d.Kube.GiveBack.Workers {
		if !strings.Contains(worker.Why, "actors move; it stays after the deadline, because no other worker has room") {
			t.Errorf("%s says %q", worker.Pod, worker.Why)
		}
	}
	if strings.Contains(w.kube.cluster.GiveBack.Workers[0].Why, "stays") {
		t.Error("the annotation has the reason")
	}
	w.want(1, raydemand.Bundle{raydemand.CPU: raydemand.Whole(4)}) // waits, and fits nowhere
	room.Available = one.Clone()
	w.seconds(10)
	if target := w.lastChange(); target.Replicas != 2 || !slices.Equal(target.WorkersToDelete, []string{w.pod(0)}) {
		t.Fatalf("target %+v, want one worker less: there is room for one actor", target)
	}
	w.operate()
	room.Available = raydemand.Bundle{} // it runs there
	w.seconds(30)
	if left := w.kube.cluster.Workers; len(left) != 2 {
		t.Errorf("%d workers, want the other actor to stay", len(left))
	}
}

func TestWhatBecomesATaskIsNotEndedWithoutForce(t *testing.T) {
	w := newBusyWorld(t, 2, 0, 8)
	w.idles(w.pod(0))
	w.seconds(5)
	if _, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu"}); err != nil {
		t.Fatal(err)
	}
	w.busy(w.pod(0)) // a task came before the drain
	w.seconds(700)
	if len(w.kube.changes) > 0 {
		t.Errorf("changes %+v, want the task to end by itself", w.kube.changes)
	}
}

// A freeze kept the workers from being drained until the deadline was over: their work has its time all the same.
func TestAWorkerThatIsDrainedLateHasItsTime(t *testing.T) {
	w := newBusyWorld(t, 2, 0, 8)
	if _, err := w.giveBack(giveback.Ask{GPUs: 2, Group: "gpu", Force: true}); err != nil {
		t.Fatal(err)
	}
	w.kube.cluster.Freeze = true
	w.seconds(700)
	w.nothingWritten("frozen")
	w.kube.cluster.Freeze = false
	w.seconds(5)
	if len(w.ray.drains) != 2 || w.ray.drains[0].Deadline.Before(w.now.Add(8*time.Minute)) {
		t.Fatalf("drains %+v, want both with most of the time", w.ray.drains)
	}
	w.seconds(500)
	if len(w.kube.changes) > 0 {
		t.Fatalf("changes %+v before that time is over", w.kube.changes)
	}
	w.seconds(60)
	if target := w.lastChange(); target.Replicas != 0 {
		t.Errorf("target %+v, want no replica", target)
	}
}

// The annotation is still there, because it could not be removed, or nobody was there to do it.
func TestNothingFollowsFromAReservationThatIsOver(t *testing.T) {
	w := newBusyWorld(t, 2, 0, 8)
	got, err := w.giveBack(giveback.Ask{GPUs: 2, Group: "gpu", Force: true, Until: w.now.Add(20 * time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	w.kube.cluster.Freeze = true
	w.seconds(1300)
	w.kube.cluster.Freeze = false
	w.want(1, gpu(1))
	w.seconds(5)
	if len(w.ray.drains) > 0 || w.kube.cluster.GiveBack != nil {
		t.Errorf("drains %v, reservation %+v, want neither after %v", w.ray.drained(), w.kube.cluster.GiveBack, got.Until)
	}
	if target := w.lastChange(); target.Replicas != 3 || len(target.WorkersToDelete) > 0 {
		t.Errorf("target %+v, want one more replica", target)
	}
}

func TestNothingIsAgreedInDoubtOrUnasked(t *testing.T) {
	readOnly := []string{"it is frozen", "it is in shadow"}
	for name, doubt := range map[string]func(*world){
		"it is frozen":            func(w *world) { w.kube.cluster.Freeze = true },
		"it is in shadow":         func(w *world) { w.kube.cluster.Mode = nodepool.Shadow },
		"Ray does not answer":     func(w *world) { w.ray.stateErr = errors.New("no answer") },
		"requests are unknown":    func(w *world) { w.kube.cluster.OwnedUnknown = "forbidden" },
		"pods are being launched": func(w *world) { w.want(2, gpu(1)) },
		"a pod waits for a node": func(w *world) {
			w.group("gpu").Replicas++
			w.operate()
		},
		"a removal meets a conflict": func(w *world) {
			w.kube.applyErr = nodepool.ErrConflict
			w.node(w.pod(2)).Status = raydemand.Dead
			w.seconds(90)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBusyWorld(t, 3, 0, 8)
			doubt(w)
			want := giveback.ErrNotNow
			if slices.Contains(readOnly, name) {
				want = nodepool.ErrReadOnly
			}
			if got, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu", Force: true}); !errors.Is(err, want) {
				t.Errorf("%+v, %v; want %v", got, err, want)
			}
			if w.kube.cluster.GiveBack != nil || len(w.ray.drains) > 0 {
				t.Error("something is given back")
			}
		})
	}
}

// The caller has left: nobody waits for the answer, so nothing may be agreed.
func TestAnAskWhoseCallerHasLeftIsForgotten(t *testing.T) {
	w := newBusyWorld(t, 2, 0, 8)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.kube.desk.Begin(ctx, key, giveback.Ask{GPUs: 1, Group: "gpu", Force: true, DeadlineSeconds: 600}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.seconds(5)
	if w.kube.cluster.GiveBack != nil {
		t.Error("it is agreed all the same")
	}
}

// The operator wrote the status after the view was read: the next cycle agrees on the object as it is then.
func TestAnAskIsAnsweredAgainAfterAConflict(t *testing.T) {
	w := newBusyWorld(t, 2, 0, 8)
	w.kube.beginErrs = []error{nodepool.ErrConflict, nodepool.ErrConflict}
	got, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu", Force: true})
	if err != nil || len(got.Workers) != 1 || w.kube.cluster.GiveBack == nil || len(w.kube.beginErrs) > 0 {
		t.Errorf("%+v, %v, written %+v", got, err, w.kube.cluster.GiveBack)
	}
}

// Ray cannot undo a drain, but the work of a worker that is not given back any more is not ended.
func TestAReservationThatIsDeletedBeforeItsDeadlineEndsNoWork(t *testing.T) {
	w := newBusyWorld(t, 2, 0, 8)
	if _, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu", Force: true}); err != nil {
		t.Fatal(err)
	}
	w.seconds(30)
	w.drains(1, "the worker that is given back")
	if err := w.kube.desk.End(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	w.seconds(900)
	for _, change := range w.kube.changes {
		if len(change.Targets[0].WorkersToDelete) > 0 {
			t.Errorf("named %v", change.Targets[0].WorkersToDelete)
		}
	}
}

// A reservation names pods by their UID, so another pod of the same name stays.
func TestAnotherPodOfTheSameNameStays(t *testing.T) {
	w := newBusyWorld(t, 2, 0, 8)
	got, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.kube.cluster.Workers {
		if p := &w.kube.cluster.Workers[i]; p.Pod == got.Workers[0].Pod {
			p.UID += "-again"
		}
	}
	w.seconds(700)
	w.nothingWritten("the pod is another one")
}

// What is agreed in the very cycle in which an earlier reservation is over must not end with it.
func TestAReservationThatFollowsAnotherStays(t *testing.T) {
	w := newBusyWorld(t, 3, 0, 8)
	_, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu", Force: true, Until: w.now.Add(11 * time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	w.seconds(640)
	w.operate()
	w.seconds(10)
	w.operate()
	w.seconds(5)
	asked, answered := make(chan struct{}), make(chan giveback.Reservation, 1)
	w.kube.enqueued = sync.OnceFunc(func() { close(asked) })
	go func() {
		got, err := w.kube.desk.Begin(context.Background(), key,
			giveback.Ask{GPUs: 1, Group: "gpu", Force: true, DeadlineSeconds: 600})
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	<-asked
	w.after(10 * time.Second)
	second := <-answered
	if got := w.kube.cluster.GiveBack; got == nil || !got.Deadline.Equal(second.Deadline) {
		t.Errorf("the annotation has %+v after the answer %+v", got, second)
	}
}
