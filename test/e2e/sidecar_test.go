package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/rig"
)

// TestOurSidecarScalesAndHandsOver runs Heliostat instead of Ray's sidecar, with the role that KubeRay grants. The fleet
// instance does not scale that RayCluster until an annotation says so. Then the maximum falls below the number of busy
// workers: with enableInTreeAutoscaling, the operator does not react to that by itself.
func TestOurSidecarScalesAndHandsOver(t *testing.T) {
	t.Parallel()
	s := stage(t, rig.Cluster{Name: "sidecar", IdleSeconds: 600, InTree: true, SidecarImage: rig.SidecarImage, Groups: []rig.Group{gpu}})
	s.step("the sidecar launches one worker, and removes it")
	s.k8sEvent("SidecarManages")
	driver := s.drive()
	s.do(driver, task("ours", 1))
	s.see(driver, "ours", "running")
	s.workers("gpu", 1)
	s.quiet("two of one kind do not both scale")
	s.created("gpu", 1)
	s.do(driver, release("ours"))
	s.idleTimeout(2)
	s.workers("gpu", 0)
	s.drainedBeforeStopped()

	s.step("the fleet instance takes over, and keeps the maximum")
	s.idleTimeout(600)
	s.setGroup(0, map[string]any{"maxReplicas": 1})
	s.annotate("mode", "managed")
	s.told("that it manages the RayCluster", func(st status) bool { return st.Mode == "managed" })
	s.do(driver, actor("first", 1), actor("second", 1))
	s.workers("gpu", 1)
	s.quiet("the maximum is 1")
	s.created("gpu", 2)
	s.setGroup(0, map[string]any{"maxReplicas": 2})
	s.see(driver, "first", "running")
	s.see(driver, "second", "running")
	busy := s.workers("gpu", 2)

	s.step("the maximum falls below the busy workers, which have ten minutes to end their work")
	s.setGroup(0, map[string]any{"maxReplicas": 1})
	s.quiet("both workers are busy")
	s.do(driver, rig.Command{Do: "ask", ID: "first"}, rig.Command{Do: "ask", ID: "second"})
	s.see(driver, "first", "answered")
	s.see(driver, "second", "answered")
	if living := rig.Living(s.journal.Facts(), "gpu"); !slices.Equal(living, busy) {
		s.Errorf("workers %v became %v", busy, living)
	}
}

// TestNothingThatAPersonLowersEndsWorkWithInTreeAutoscalingOn gives a RayCluster to the fleet that has Heliostat as the
// autoscaler's image: the container is parked. A person then lowers each number of a busy group. The operator leaves all
// pods to the autoscaler, and Heliostat keeps busy workers, which have ten minutes to end their work.
func TestNothingThatAPersonLowersEndsWorkWithInTreeAutoscalingOn(t *testing.T) {
	t.Parallel()
	group := gpu
	group.Min = 2
	s := stage(t, rig.Cluster{Name: "parked", IdleSeconds: 600, InTree: true, SidecarImage: rig.SidecarImage, Groups: []rig.Group{group},
		Annotations: map[string]string{"heliostat.dev/mode": "managed"}})
	s.told("that the fleet manages it", func(st status) bool { return st.Mode == "managed" })
	driver := s.drive()
	s.do(driver, actor("first", 1), actor("second", 1), actor("third", 1))
	busy := s.workers("gpu", 3)
	answers := 0
	unharmed := func(why string) {
		s.Helper()
		s.quiet(why)
		s.do(driver, rig.Command{Do: "ask", ID: "first"}, rig.Command{Do: "ask", ID: "second"}, rig.Command{Do: "ask", ID: "third"})
		answers++
		for _, id := range []string{"first", "second", "third"} {
			s.seen(driver, id, "answered", answers)
		}
		if living := rig.Living(s.journal.Facts(), "gpu"); !slices.Equal(living, busy) {
			s.Fatalf("%s: workers %v became %v", why, busy, living)
		}
	}
	for _, id := range []string{"first", "second", "third"} {
		s.see(driver, id, "running")
	}

	s.step("minReplicas falls from 2 to 0")
	s.setGroup(0, map[string]any{"minReplicas": 0})
	unharmed("a lower minimum ends nothing")

	s.step("replicas fall from 3 to 0")
	s.setGroup(0, map[string]any{"replicas": 0})
	unharmed("nobody named a worker")

	s.step("maxReplicas falls from 4 to 1, and replicas with it")
	s.setGroup(0, map[string]any{"maxReplicas": 1, "replicas": 1})
	unharmed("all workers are busy")

	s.step("a worker whose work ends within the time leaves by name")
	var leaving []string
	s.eventually("two of three busy workers to drain", func(facts []rig.Fact) bool {
		leaving = slices.DeleteFunc(slices.Clone(busy), func(pod string) bool {
			_, drains := rig.OfPod(facts, pod, rig.Drained)
			return !drains
		})
		return len(leaving) == 2
	})
	for _, id := range []string{"first", "second", "third"} {
		if s.see(driver, id, "running").Pod == leaving[0] {
			s.do(driver, release(id))
		}
	}
	s.workers("gpu", 2)
	s.drainedBeforeStopped()
	s.created("gpu", 3)
	s.logUseOfTheParked()
}

// logUseOfTheParked logs the memory and the CPU time of the container that does nothing.
func (s *scene) logUseOfTheParked() {
	pid, err := rig.FindProcess("--cluster-name", s.name, "--cluster-namespace", s.namespace)
	s.must(err)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	s.must(err)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	s.must(err)
	s.Logf("the parked container after %v: %s; user and system time in 10 ms: %v", time.Since(s.began).Round(time.Second),
		strings.Join(regexp.MustCompile(`Rss(Anon|File):\s+\d+ kB`).FindAllString(string(status), -1), ", "), strings.Fields(string(stat))[13:15])
}

// TestRaysOwnSidecarIsNeverFought runs Ray's Python autoscaler beside the head, which scales one task up and down.
// Heliostat decides too, and only observes: the status reports both, and Heliostat writes nothing to the RayCluster.
// The command that would park the container is a field of KubeRay 1.7. Without its definition, kubectl refuses it, and the
// API server drops it for other clients.
func TestRaysOwnSidecarIsNeverFought(t *testing.T) {
	t.Parallel()
	s := prepare(t, "theirs")
	writers := s.writers()
	manifest := rig.Cluster{Namespace: s.namespace, Name: s.name, IdleSeconds: 5, InTree: true, Groups: []rig.Group{gpu}}.Manifest()
	s.must(unstructured.SetNestedStringSlice(manifest.Object, []string{"sleep", "infinity"}, "spec", "autoscalerOptions", "command"))
	s.must(lab.Create(s.ctx, manifest.DeepCopy()))
	manifest.SetName("strict")
	_, err := lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).Create(s.ctx, manifest, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.autoscalerOptions.command"`) {
		s.Errorf("with strict validation, as kubectl has it: %v", err)
	}
	s.headAlive()
	s.k8sEvent("SidecarAlive")
	head, err := lab.HeadPod(s.ctx, s.namespace, s.name)
	s.must(err)
	for _, container := range head.Spec.Containers {
		if started := strings.Join(container.Args, " "); container.Name == "autoscaler" && !strings.HasPrefix(started, "ray kuberay-autoscaler ") {
			s.Errorf("the operator starts the autoscaler with %s", started)
		}
	}
	s.told("shadow", func(st status) bool { return st.Mode == "shadow" })

	s.step("Heliostat and Ray's autoscaler compare")
	s.compared("both at rest", 0, 0)
	driver := s.drive()
	// Ray's autoscaler looks every 5 s, and could be the first to see the task. So it stands still until Heliostat has.
	theirs, err := rig.FindProcess("--cluster-name", s.name, "--cluster-namespace", s.namespace)
	s.must(err)
	s.must(syscall.Kill(theirs, syscall.SIGSTOP))
	s.do(driver, task("work", 1))
	s.compared("one worker wanted by Heliostat alone", 1, 0)
	s.must(syscall.Kill(theirs, syscall.SIGCONT))
	up := s.compared("one worker wanted by both", 1, 1)
	if up.ScaledBy == "" || up.ScaledBy == "heliostat" {
		s.Errorf("theirs are written by %q", up.ScaledBy)
	}
	s.see(driver, "work", "running")
	s.do(driver, release("work"))
	down := s.compared("no worker wanted by either", 0, 0)
	table, err := exec.CommandContext(s.ctx, lab.Program, "status", "--server", fleet.URL, s.namespace+"/"+s.name).CombinedOutput()
	t.Logf("autoscaler status:\n%s", table)
	if err != nil || !strings.Contains(string(table), "ASKED is what "+down.ScaledBy+" wants") {
		s.Errorf("autoscaler status ends with %v and does not tell the writer", err)
	}
	if managers := writers(); slices.Contains(managers, "heliostat") || len(managers) < 2 {
		s.Errorf("the RayCluster was written by %q, want others and never heliostat", managers)
	}
	s.step("Heliostat leaves a request to a sidecar that does not read it")
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	s.quiet("Ray's autoscaler decides")
}

// compared waits until Heliostat wants, and the other autoscaler asks for, so many pods of the only group, and returns the
// status.
func (s *scene) compared(what string, ours, theirs int) status {
	s.Helper()
	return s.told(what, func(st status) bool {
		return len(st.Groups) == 1 && st.Groups[0].Desired == ours && st.Groups[0].Asked == theirs
	})
}

// writers collects the field managers of every later version of the RayCluster. The last version is not enough, because
// the list of worker groups belongs to the last writer.
func (s *scene) writers() func() []string {
	var mu sync.Mutex
	seen := map[string]bool{}
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			watching, err := lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for event := range watching.ResultChan() {
				if object, ok := event.Object.(*unstructured.Unstructured); ok {
					mu.Lock()
					for _, entry := range object.GetManagedFields() {
						seen[entry.Manager] = true
					}
					mu.Unlock()
				}
			}
		}
	}()
	return func() []string {
		cancel()
		<-done
		mu.Lock()
		defer mu.Unlock()
		var managers []string
		for manager := range seen {
			managers = append(managers, manager)
		}
		slices.Sort(managers)
		return managers
	}
}
