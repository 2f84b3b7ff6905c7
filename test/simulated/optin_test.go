package simulated

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

// size is how many workers the RayCluster has.
const size = 8

// status is what the REST API reports about the RayCluster.
type status struct {
	Mode, ModeReason string
	LastCycle        *time.Time
	OptIn            *struct {
		Changes []struct{ Action, Group, Count string }
	}
}

// TestAFixedSizeClusterIsNotScaledUntilItOptsIn installs Heliostat with its defaults beside a RayCluster with idle
// workers, opts it in and out with the commands, and then with the annotation of the namespace.
func TestAFixedSizeClusterIsNotScaledUntilItOptsIn(t *testing.T) {
	t.Parallel()
	l := start(t, "fixed", "127.11.0.1")
	l.createFixed()
	before := l.cluster().GetGeneration()
	var err error
	l.heliostat, err = l.ServeByDefault(t.Context())
	l.must(err)

	// Nothing happens for many cycles after the idle timeout.
	var ripe time.Time
	l.until("a plan that would stop all workers, for 5 s", func(s status) bool {
		if s.Mode != "shadow" || !strings.HasPrefix(s.ModeReason, "shadow by default") {
			t.Fatalf("mode %s because %q", s.Mode, s.ModeReason)
		}
		if ripe.IsZero() && s.would("stop") == fmt.Sprint(size) {
			ripe = *s.LastCycle
		}
		return !ripe.IsZero() && s.LastCycle.Sub(ripe) > 5*time.Second
	})
	if got := l.cluster(); got.GetGeneration() != before || l.replicas() != size {
		t.Fatalf("generation %d → %d, %d replicas, without any opt-in", before, got.GetGeneration(), l.replicas())
	}

	out := l.command("manage", l.namespace+"/"+l.name, "--yes")
	for _, want := range []string{"stop 8 × cpu", "shrink group cpu by up to 8", "down to minReplicas: 0 of 8 pods", "Heliostat scales it"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("manage does not print %q:\n%s", want, out)
		}
	}
	l.until("the idle workers to be stopped", func(s status) bool { return s.Mode == "managed" && l.replicas() == 0 })

	l.command("unmanage", l.namespace+"/"+l.name)
	l.until("the mode that unmanage sets", func(s status) bool { return s.Mode == "shadow" && strings.Contains(s.ModeReason, "of the RayCluster") })
	l.annotate(`null`)
	l.until("the default", func(s status) bool { return strings.HasPrefix(s.ModeReason, "shadow by default") })
	l.annotateNamespace("managed")
	l.until("the namespace's mode", func(s status) bool { return s.Mode == "managed" && strings.HasSuffix(s.ModeReason, "of Namespace ml") })
	l.annotateNamespace("off")
	l.until("mode off of the namespace", func(s status) bool { return s.Mode == "off" })
}

// createFixed creates the RayCluster with the defaults of KubeRay, minReplicas: 0 and no maximum, and its idle workers.
func (l *lab) createFixed() {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	l.create(2, rig.Group{Name: "cpu", Replicas: size, Max: 1<<31 - 1})
	for i := range size {
		pod, ip := fmt.Sprintf("%s-cpu-%d", l.name, i), fmt.Sprintf("127.11.1.%d", i+1)
		l.must(rig.StandInWorker(ctx, l.Kube, l.cluster(), "cpu", pod, ip))
		one := raydemand.Bundle{raydemand.CPU: raydemand.One}
		l.head.AddNode(simray.Node{Instance: pod, Group: "cpu", IP: ip, Resources: one})
	}
}

// command runs the program against the REST API.
func (l *lab) command(arguments ...string) string {
	l.Helper()
	out, err := exec.CommandContext(l.Context(), l.Program, append(arguments, "--server", l.heliostat.URL)...).CombinedOutput()
	if err != nil {
		l.Fatalf("autoscaler %v: %v\n%s", arguments, err, out)
	}
	return string(out)
}

func (l *lab) annotate(value string) {
	l.Helper()
	_, err := l.Dynamic.Resource(rig.RayClusters).Namespace(l.namespace).Patch(l.Context(), l.name, types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"heliostat.dev/mode": `+value+`}}}`), metav1.PatchOptions{})
	l.must(err)
}

func (l *lab) annotateNamespace(mode string) {
	l.Helper()
	_, err := l.Kube.CoreV1().Namespaces().Patch(l.Context(), l.namespace, types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"heliostat.dev/mode": "`+mode+`"}}}`), metav1.PatchOptions{})
	l.must(err)
}

// until waits until the REST API reports what is wanted.
func (l *lab) until(what string, want func(status) bool) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	for {
		var shown status
		code, answer, err := l.heliostat.Call(ctx, http.MethodGet, "/v1/namespaces/"+l.namespace+"/rayclusters/"+l.name, "")
		if err == nil && code == http.StatusOK {
			l.must(json.Unmarshal(answer, &shown))
			if shown.LastCycle != nil && want(shown) {
				return
			}
		}
		select {
		case <-ctx.Done():
			l.Fatalf("waiting for %s: %v; status %d: %s", what, err, code, answer)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// would returns how many pods an action is about, or nothing where there is no such action.
func (s status) would(action string) string {
	if s.OptIn == nil {
		return ""
	}
	for _, change := range s.OptIn.Changes {
		if change.Action == action {
			return change.Count
		}
	}
	return ""
}
