package optin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/internal/simray"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

const (
	namespace, name = "ml", "fixed"
	headIP          = "127.11.0.1"
	size            = 8
	patience        = 2 * time.Minute
)

// status is what the REST API shows of the RayCluster.
type status struct {
	Mode, ModeReason string
	LastCycle        *time.Time
	OptIn            *struct {
		Changes []struct{ Action, Group, Count string }
	}
}

// lab is a control plane with one RayCluster of fixed size, whose workers are idle.
type lab struct {
	*testing.T
	*rig.Rig
	heliostat *rig.Heliostat
}

func TestAClusterOfFixedSizeIsLeftAloneUntilSomebodyAsks(t *testing.T) {
	l := start(t)
	head, err := simray.Start(simray.Options{Address: headIP + ":6379", Head: simray.Node{Instance: name + "-head", IP: headIP}})
	l.must(err)
	defer head.Close()
	l.make(head)
	before := l.cluster().GetGeneration()
	l.heliostat, err = l.ServeByDefault(t.Context())
	l.must(err)
	t.Cleanup(l.heliostat.Kill)

	// The idle timeout is over, and for many cycles after that nothing happens.
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
		t.Fatalf("generation %d → %d, %d replicas: nobody asked for that", before, got.GetGeneration(), l.replicas())
	}

	out := l.command("manage", namespace+"/"+name, "--yes")
	for _, want := range []string{"stop 8 × cpu", "shrink group cpu by up to 8", "down to minReplicas: 0 of 8 pods", "Heliostat scales it"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("manage does not say %q:\n%s", want, out)
		}
	}
	l.until("the idle workers to be taken away", func(s status) bool { return s.Mode == "managed" && l.replicas() == 0 })

	l.command("unmanage", namespace+"/"+name)
	l.until("the mode that unmanage sets", func(s status) bool { return s.Mode == "shadow" && strings.Contains(s.ModeReason, "of the RayCluster") })
	l.annotate(`null`)
	l.until("the default", func(s status) bool { return strings.HasPrefix(s.ModeReason, "shadow by default") })
	l.annotateNamespace("managed")
	l.until("the namespace's mode", func(s status) bool { return s.Mode == "managed" && strings.HasSuffix(s.ModeReason, "of Namespace ml") })
	begun := time.Now()
	l.annotateNamespace("off")
	l.until("the namespace to take it back", func(s status) bool { return s.Mode == "off" })
	if took := time.Since(begun); took > time.Second {
		t.Errorf("it took %s until the namespace's mode counted, want at most 1 s", took)
	} else {
		t.Logf("the namespace's mode counted after %s", took)
	}
}

func start(t *testing.T) *lab {
	rig.Quiet()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Nodes: []nodeagent.NodeSpec{}, NoOperator: true, Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	program, err := rig.Build(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	return &lab{T: t, Rig: &rig.Rig{Cluster: cluster, Kube: cluster.Client(), Dynamic: cluster.Dynamic(), Program: program, Dir: dir}}
}

// make makes the RayCluster with the defaults of KubeRay, minReplicas: 0 and no maximum, and its pods.
func (l *lab) make(head *simray.Head) {
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	group := rig.Group{Name: "cpu", Replicas: size, Max: 1<<31 - 1}
	l.must(l.Create(ctx, rig.Cluster{Namespace: namespace, Name: name, IdleSeconds: 2, Groups: []rig.Group{group}}.Manifest()))
	l.must(rig.StandInHead(ctx, l.Kube, l.cluster(), headIP))
	for i := range size {
		pod, ip := fmt.Sprintf("%s-cpu-%d", name, i), fmt.Sprintf("127.11.1.%d", i+1)
		l.must(rig.StandInWorker(ctx, l.Kube, l.cluster(), "cpu", pod, ip))
		head.AddNode(simray.Node{Instance: pod, Group: "cpu", IP: ip, Resources: raydemand.Bundle{raydemand.CPU: raydemand.One}})
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
	_, err := l.Dynamic.Resource(rig.RayClusters).Namespace(namespace).Patch(l.Context(), name, types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"heliostat.dev/mode": `+value+`}}}`), metav1.PatchOptions{})
	l.must(err)
}

func (l *lab) annotateNamespace(mode string) {
	l.Helper()
	_, err := l.Kube.CoreV1().Namespaces().Patch(l.Context(), namespace, types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"heliostat.dev/mode": "`+mode+`"}}}`), metav1.PatchOptions{})
	l.must(err)
}

// until waits until the REST API shows what is wanted.
func (l *lab) until(what string, want func(status) bool) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	for {
		var shown status
		code, answer, err := l.heliostat.Call(ctx, http.MethodGet, "/v1/namespaces/"+namespace+"/rayclusters/"+name, "")
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

// would is how many pods an action is about, empty where there is none.
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

func (l *lab) cluster() *unstructured.Unstructured {
	l.Helper()
	object, err := l.Dynamic.Resource(rig.RayClusters).Namespace(namespace).Get(l.Context(), name, metav1.GetOptions{})
	l.must(err)
	return object
}

func (l *lab) replicas() int64 {
	l.Helper()
	groups, _, err := unstructured.NestedSlice(l.cluster().Object, "spec", "workerGroupSpecs")
	l.must(err)
	replicas, _, err := unstructured.NestedInt64(groups[0].(map[string]any), "replicas")
	l.must(err)
	return replicas
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}
