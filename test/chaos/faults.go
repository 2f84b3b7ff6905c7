package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/chaos/apiproxy"
	"heliostat.dev/heliostat/test/chaos/fleet"
	"heliostat.dev/heliostat/test/chaos/schedule"
	"heliostat.dev/heliostat/test/chaos/verdict"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

// play begins and ends faults as the schedule says, and returns when all have ended and the storm is over.
func (t *trial) play(ctx context.Context, faults []schedule.Fault) error {
	var group sync.WaitGroup
	errs := make(chan error, len(faults)+1)
	for _, f := range faults {
		t.played[f.Kind]++
		group.Go(func() {
			if err := t.fault(ctx, f); err != nil {
				errs <- fmt.Errorf("playing %s: %w", f, err)
			}
		})
	}
	group.Go(func() { errs <- wait(ctx, t.storm) })
	group.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

// fault plays one fault.
func (t *trial) fault(ctx context.Context, f schedule.Fault) error {
	if err := wait(ctx, f.At); err != nil {
		return err
	}
	defer t.hinder(f)()
	undo, err := t.begin(ctx, f)
	if err != nil {
		return err
	}
	if err := wait(ctx, f.For); err != nil {
		return errors.Join(err, undo())
	}
	return undo()
}

// hinder reports that a fault begins, if Heliostat can then not read or not write or the operator stands still, and
// returns how to report its end.
func (t *trial) hinder(f schedule.Fault) (end func()) {
	h := verdict.Hindered{At: time.Now()}
	switch kind, _, _ := strings.Cut(string(f.Kind), "-"); kind {
	case "operator":
		s := verdict.Standstill{At: h.At}
		t.see(s)
		return func() { s.Ended = time.Now(); t.see(s) }
	case "api", "heliostat":
	case "head":
		h.Cluster = t.headOf(f).Name
	case "annotations": // a senseless mode or freeze stops all writes
		if key, _ := nonsensical(f); key != "heliostat.dev/mode" && key != "heliostat.dev/freeze" {
			return func() {}
		}
		h.Cluster = t.objectOf(f).Name
	default:
		return func() {}
	}
	t.see(h)
	return func() { h.Ended = time.Now(); t.see(h) }
}

// headOf returns the RayCluster whose head has a fault.
func (t *trial) headOf(f schedule.Fault) *fleet.Member {
	return t.fleet.Members[f.Cluster%len(t.fleet.Members)]
}

// objectOf returns the RayCluster that people write into. Those in shadow are left alone, because their mode is an
// annotation.
func (t *trial) objectOf(f schedule.Fault) *fleet.Member {
	return t.fleet.Members[f.Cluster%(len(t.fleet.Members)-fleet.ShadowMembers)]
}

// begin begins a fault, and returns how to end it.
func (t *trial) begin(ctx context.Context, f schedule.Fault) (undo func() error, err error) {
	if strings.HasPrefix(string(f.Kind), "head-") {
		return t.beginHead(f)
	}
	if f.Cluster >= 0 {
		return t.beginObject(ctx, f)
	}
	return t.beginShared(ctx, f)
}

// nothing ends what has already ended.
func nothing() error { return nil }

// beginHead begins a fault of a head.
func (t *trial) beginHead(f schedule.Fault) (func() error, error) {
	m := t.headOf(f)
	fault := simray.Fault{}
	switch f.Kind {
	case schedule.HeadRestart:
		return nothing, m.Head.Restart()
	case schedule.HeadGCS:
		return nothing, m.Head.RestartGCS()
	case schedule.HeadHangs:
		fault.Delay = time.Minute
	case schedule.HeadSlow:
		fault.Delay = time.Duration(f.Draw%1500) * time.Millisecond
	case schedule.HeadFails:
		fault.Code, fault.Message = codes.Unavailable, "the head is not available"
	case schedule.HeadGarbage:
		fault.Garbage = []byte{0xff, 0x00, 0xff, byte(f.Draw)}
	case schedule.HeadToken:
		fault.Code, fault.Message = codes.Unauthenticated, "InvalidAuthToken: the token is missing or incorrect"
	case schedule.HeadOld:
		fault.Lie = fleet.Old()
	case schedule.HeadPartial:
		fault.Lie = fleet.Partial
	case schedule.HeadDuplicate:
		fault.Lie = fleet.Duplicate
	case schedule.HeadNegative:
		fault.Lie = fleet.Negative
	case schedule.HeadEnormous:
		fault.Lie = fleet.Enormous
	default:
		return nil, fmt.Errorf("no such fault of a head: %s", f.Kind)
	}
	m.SetFault(fault)
	return func() error { m.SetFault(simray.Fault{}); return nil }, nil
}

// proxied are the faults of the API server that the proxy plays.
var proxied = map[schedule.Kind]apiproxy.Fault{
	schedule.APISlow: {Delay: 1500 * time.Millisecond},
	schedule.API429:  {Code: http.StatusTooManyRequests},
	schedule.API409:  {Code: http.StatusConflict, Verb: http.MethodPatch},
	schedule.API500:  {Code: http.StatusInternalServerError},
}

// beginShared begins a fault of what all RayClusters share.
func (t *trial) beginShared(ctx context.Context, f schedule.Fault) (func() error, error) {
	if fault, ok := proxied[f.Kind]; ok {
		remove := t.proxy.Add(fault)
		return func() error { remove(); return nil }, nil
	}
	switch f.Kind {
	case schedule.APICut:
		t.proxy.CutWatches()
		return nothing, nil
	case schedule.APIExpired:
		t.proxy.ExpireWatches(time.Second)
		return nothing, nil
	case schedule.APICompact:
		return nothing, t.Cluster.Compact(ctx)
	case schedule.APIRestart:
		return nothing, t.restartPart(ctx, devcluster.APIServer)
	case schedule.APIOlder:
		t.restarting.Lock()
		defer t.restarting.Unlock()
		return func() error { return t.restore(ctx) }, t.Cluster.SaveData()
	case schedule.Operator:
		return t.Cluster.HoldPart(devcluster.Operator)
	case schedule.MachineGone:
		i := int(f.Draw % fleet.Machines)
		err := persist(ctx, func() error { return t.fleet.RemoveMachine(ctx, i) })
		return func() error { return persist(ctx, func() error { return t.fleet.AddMachine(ctx, i) }) }, err
	case schedule.OurKill:
		t.running.Lock()
		t.kill()
		return func() error { defer t.running.Unlock(); t.restart(ctx); return nil }, nil
	case schedule.OurPause:
		t.running.Lock()
		pid := t.heliostat.Load().PID()
		return func() error { defer t.running.Unlock(); return signal(pid, syscall.SIGCONT) }, signal(
			pid,
			syscall.SIGSTOP,
		)
	}
	return nil, fmt.Errorf("no such fault: %s", f.Kind)
}

// signal sends a signal to a process, unless it has ended.
func signal(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// restore lets the control plane continue with the data that it had when the fault began.
func (t *trial) restore(ctx context.Context) error {
	t.restarting.Lock()
	defer t.restarting.Unlock()
	t.older.Store(true)
	if err := t.Cluster.RestoreData(ctx, t.fleet.Restored); err != nil {
		return err
	}
	return persist(ctx, func() error { return t.fleet.Rejoin(ctx) })
}

// nonsense are values that no annotation may have.
var nonsense = []string{"", "maybe", "-1", "NaN", `{"cpu":`, `{"cpu": -1e308}`, "[]", "null", `"true"`,
	strings.Repeat("[", 10_000), "\u0000\uffff", `[{"resources":{"CPU":1e400},"count":-5}]`}

// annotations are those that Heliostat reads, and one that it does not know. A nonsensical mode or freeze stops all
// writes, and Heliostat's own annotations are not for people.
var annotations = []string{"heliostat.dev/mode", "heliostat.dev/freeze", "heliostat.dev/isolation",
	"heliostat.dev/num-gpus-sync", "heliostat.dev/price", "heliostat.dev/unheard-of"}

// nonsensical returns the annotation of a fault, and its value.
func nonsensical(f schedule.Fault) (key, value string) {
	draw := int64(f.Draw)
	return annotations[int(draw>>4)%len(annotations)], nonsense[int(draw>>12)%len(nonsense)]
}

// beginObject begins what people write into a RayCluster.
func (t *trial) beginObject(ctx context.Context, f schedule.Fault) (func() error, error) {
	name := t.objectOf(f).Name
	group, draw := int(f.Draw>>16%2), int64(f.Draw)
	switch f.Kind {
	case schedule.Nonsense:
		key, value := nonsensical(f)
		return func() error { return t.annotate(ctx, name, key, nil) }, t.annotate(ctx, name, key, value)
	case schedule.Maximum:
		return func() error { return t.limit(ctx, name, group, "maxReplicas", fleet.MaxReplicas) },
			t.limit(ctx, name, group, "maxReplicas", 1+draw%(2*fleet.MaxReplicas))
	case schedule.Minimum:
		return func() error { return t.limit(ctx, name, group, "minReplicas", 0) },
			t.limit(ctx, name, group, "minReplicas", 1+draw%2)
	}
	return nil, fmt.Errorf("no such fault of a RayCluster: %s", f.Kind)
}

// annotate sets an annotation of a RayCluster, or removes it.
func (t *trial) annotate(ctx context.Context, name, key string, value any) error {
	return t.patch(ctx, name, types.MergePatchType,
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

// limit sets a limit of a worker group.
func (t *trial) limit(ctx context.Context, name string, group int, field string, to int64) error {
	say := func() { t.see(verdict.Limited{At: time.Now(), Cluster: name, Group: fleet.Groups[group]}) }
	say()
	defer say()
	path := fmt.Sprintf("/spec/workerGroupSpecs/%d/%s", group, field)
	return t.patch(ctx, name, types.JSONPatchType, []any{map[string]any{"op": "replace", "path": path, "value": to}})
}

// patch writes into a RayCluster as a person would.
func (t *trial) patch(ctx context.Context, name string, kind types.PatchType, patch any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	client := t.Dynamic.Resource(rig.RayClusters).Namespace(t.fleet.Namespace)
	return persist(ctx, func() error {
		_, err := client.Patch(ctx, name, kind, text, metav1.PatchOptions{FieldManager: "person"})
		return err
	})
}

// persist tries again for some seconds, because the API server may be restarting.
func persist(ctx context.Context, try func() error) error {
	err := try()
	for end := time.Now().Add(15 * time.Second); err != nil && time.Now().Before(end); err = try() {
		if wait(ctx, 300*time.Millisecond) != nil {
			break
		}
	}
	return err
}
