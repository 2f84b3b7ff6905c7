package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/rig"
)

// patience is the limit of each wait. On an idle machine, no wait takes 20 s. When several Ray nodes start at once on
// two busy cores, a wait takes a minute, and on a slow machine, where they start one by one, several.
const patience = 10 * time.Minute

// scene is one RayCluster under test, with everything that observes it.
type scene struct {
	*testing.T
	ctx             context.Context
	namespace, name string
	journal         *rig.Journal
	began           time.Time
}

// step logs what begins now.
func (s *scene) step(what string) {
	s.Helper()
	s.Logf("%s, %3.0f s: %s", s.T.Name(), time.Since(s.began).Seconds(), what)
}

// gpu and cpu are the worker groups that most tests need.
var (
	gpu = rig.Group{Name: "gpu", Max: 4, Devices: map[string]int64{"nvidia.com/gpu": 1}}
	cpu = rig.Group{Name: "cpu", Max: 4, CPU: "2"}
)

// stage creates a RayCluster in the test's own namespace and waits until its head is alive.
func stage(t *testing.T, cluster rig.Cluster) *scene {
	t.Helper()
	s := prepare(t, cluster.Name)
	cluster.Namespace = s.namespace
	s.create(cluster)
	return s
}

// prepare observes a RayCluster that may not exist yet. It deletes the namespace when the test ends.
func prepare(t *testing.T, name string) *scene {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &scene{T: t, ctx: ctx, began: time.Now(), namespace: strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())), name: name}
	if len(s.namespace) > 60 {
		s.namespace = strings.TrimRight(s.namespace[:60], "-")
	}
	s.journal = rig.NewJournal(func(f rig.Fact) {
		t.Logf("%7.2fs %-14s %-5s %s %s", f.At.Sub(s.began).Seconds(), f.Stage, f.Group, f.Pod, f.Detail)
	})
	if name != "" { // the journal starts to observe a cluster that the operator names after its name is known
		lab.Observe(ctx, s.namespace, name, s.journal)
	}
	t.Cleanup(func() {
		cancel()
		// Kubernetes deletes the cluster's pods and objects with the namespace.
		err := lab.Kube.CoreV1().Namespaces().Delete(context.Background(), s.namespace, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting namespace %s: %v", s.namespace, err)
		}
	})
	return s
}

// create creates the RayCluster and waits until its head is alive.
func (s *scene) create(cluster rig.Cluster) {
	s.Helper()
	s.must(lab.Create(s.ctx, cluster.Manifest()))
	s.headAlive()
}

func (s *scene) headAlive() {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	s.must(lab.HeadAlive(ctx, s.namespace, s.name))
}

// drive connects a driver and stops it when the test ends. It adds env to the driver's environment.
func (s *scene) drive(env ...string) *rig.Driver {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	driver, err := lab.Driver(ctx, s.namespace, s.name, s.namespace, env...)
	s.must(err)
	following, stop := context.WithCancel(s.ctx)
	go rig.FollowDriver(following, driver, s.journal)
	s.Cleanup(func() {
		stop()
		if s.Failed() {
			s.Logf("events of the driver: %+v", driver.Events())
		}
		driver.Kill()
	})
	return driver
}

// patient returns a context for one wait.
func (s *scene) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, patience)
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// do sends commands to a driver and waits until each one is submitted.
func (s *scene) do(driver *rig.Driver, commands ...rig.Command) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for _, c := range commands {
		s.must(driver.Do(c))
		if c.Do == "task" || c.Do == "actor" || c.Do == "group" {
			_, err := driver.Wait(ctx, c.ID, "submitted")
			s.must(err)
		}
	}
}

// see waits for an event of the driver.
func (s *scene) see(driver *rig.Driver, id, event string) rig.Event {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	e, err := driver.Wait(ctx, id, event)
	s.must(err)
	return e
}

// seen waits until an event has come n times, and returns the last one.
func (s *scene) seen(driver *rig.Driver, id, event string, n int) (last rig.Event) {
	s.Helper()
	s.see(driver, id, event)
	s.until(fmt.Sprintf("event %s of %s to come %d times", event, id, n), func() bool {
		came := slices.DeleteFunc(slices.Clone(driver.Events()), func(e rig.Event) bool { return e.ID != id || e.Event != event })
		if len(came) >= n {
			last = came[n-1]
		}
		return len(came) >= n
	})
	return last
}

// eventually waits until done returns true for the facts.
func (s *scene) eventually(what string, done func([]rig.Fact) bool) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	s.must(s.journal.Wait(ctx, what, done))
}

// workers waits until exactly n workers of the group are alive in Ray, and returns their pods.
func (s *scene) workers(group string, n int) []string {
	s.Helper()
	s.eventually(fmt.Sprintf("%d living workers of group %s", n, group), func(facts []rig.Fact) bool {
		living := rig.Living(facts, group)
		for _, pod := range living {
			if _, alive := rig.OfPod(facts, pod, rig.NodeAlive); !alive {
				return false
			}
		}
		return len(living) == n
	})
	return rig.Living(s.journal.Facts(), group)
}

// quiet asserts that Heliostat patches no group and no pod is created or stopped while Heliostat decides three times
// more. A pod is often seen before the patch that made it, as each kind has its own watch: so quiet first waits until
// the journal has the patches so far.
func (s *scene) quiet(why string) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	s.must(s.journal.WaitReplicas(ctx, rig.Replicas(s.object())))
	before, decided, decisions := len(s.journal.Facts()), time.Now(), 0
	s.told("further decisions", func(st status) bool {
		if st.LastCycle.After(decided) {
			decided = st.LastCycle
			decisions++
		}
		return decisions == 3
	})
	for _, f := range s.journal.Facts()[before:] {
		if f.Stage == rig.GroupPatched || f.Stage == rig.PodCreated || f.Stage == rig.PodStopping {
			s.Errorf("%s: but %s %s %s", why, f.Stage, f.Group+f.Pod, f.Detail)
		}
	}
}

// created asserts the total number of workers that the group has had since the test began. More workers mean that
// demand was counted twice.
func (s *scene) created(group string, want int) {
	s.Helper()
	if pods := s.workersEver(group); len(pods) != want {
		s.Errorf("group %s had %d workers in all, want %d: %v", group, len(pods), want, pods)
	}
}

// workersEver returns all workers that a group has had, without those in which Ray gave up before it joined.
func (s *scene) workersEver(group string) []string {
	facts := s.journal.Facts()
	return slices.DeleteFunc(rig.Pods(facts, group), func(pod string) bool { return rig.GaveUp(facts, pod) })
}

// patch changes the RayCluster as a user would.
func (s *scene) patch(merge string) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	_, err := lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).Patch(ctx, s.name, types.MergePatchType, []byte(merge), metav1.PatchOptions{})
	s.must(err)
}

// patchedTo waits until the replicas of a group are set to a number.
func (s *scene) patchedTo(group string, replicas int64) {
	s.Helper()
	s.eventually(fmt.Sprintf("group %s to have %d replicas", group, replicas), func(facts []rig.Fact) bool {
		_, patched := rig.First(facts, func(f rig.Fact) bool { return f.Stage == rig.GroupPatched && f.Group == group && f.To == replicas })
		return patched
	})
}

// setGroup changes fields of one worker group by its index.
func (s *scene) setGroup(index int, fields map[string]any) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	var operations []map[string]any
	for field, value := range fields {
		operations = append(operations, map[string]any{"op": "add", "path": fmt.Sprintf("/spec/workerGroupSpecs/%d/%s", index, field), "value": value})
	}
	patch, err := json.Marshal(operations)
	s.must(err)
	_, err = lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).Patch(ctx, s.name, types.JSONPatchType, patch, metav1.PatchOptions{})
	s.must(err)
}

// object reads the RayCluster.
func (s *scene) object() *unstructured.Unstructured {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	object, err := lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	s.must(err)
	return object
}

// rest calls Heliostat's REST API for the RayCluster, or for its request_resources, and fails the test unless the call
// succeeds. It retries after a conflict and if Heliostat does not know the cluster yet, as the API documents.
func (s *scene) rest(method, suffix, body string) []byte {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	path := "/v1/namespaces/" + s.namespace + "/rayclusters/" + s.name + suffix
	for {
		status, answer, err := fleet.Call(ctx, method, path, body)
		if err == nil && status < http.StatusMultipleChoices {
			return answer
		}
		if ctx.Err() != nil || (err == nil && status == http.StatusBadRequest) {
			s.Fatalf("%s %s: status %d, %v: %s", method, path, status, err, answer)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// status is the response of GET …/rayclusters/{name}.
type status struct {
	Mode, ModeReason, ScaledBy string
	Frozen                     bool
	LastCycle                  time.Time
	Groups                     []groupStatus
	Unmet                      []struct{ Reason struct{ Code string } }
	Findings                   []struct{ Code, Field string }
}

// groupStatus is the part of a status about one worker group.
type groupStatus struct {
	Name                    string
	Current, Desired, Asked int
	Closed                  string
	Reasons                 []struct{ Code, Message string }
	NumGPUs                 struct {
		Declared, Derived, Reported, Ray *float64
		Sources                          struct{ Reported string }
		Mismatch                         bool
		Sync                             struct{ Code, Why string }
	}
}

// because reports whether the group has a reason with that code and text.
func (g groupStatus) because(code, text string) bool {
	return slices.ContainsFunc(g.Reasons, func(r struct{ Code, Message string }) bool {
		return r.Code == code && strings.Contains(r.Message, text)
	})
}

// unmet reports whether there is unmet demand with that reason.
func (s status) unmet(code string) bool {
	for _, u := range s.Unmet {
		if u.Reason.Code == code {
			return true
		}
	}
	return false
}

// told waits until the status in Heliostat's REST API satisfies want, and returns it.
func (s *scene) told(what string, want func(status) bool) status {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for {
		var got status
		s.must(json.Unmarshal(s.rest(http.MethodGet, "", ""), &got))
		if want(got) {
			return got
		}
		if ctx.Err() != nil {
			s.Fatalf("waiting until REST tells %s; last told: %+v", what, got)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// k8sEvent waits for a Kubernetes Event with that reason on the RayCluster.
func (s *scene) k8sEvent(reason string) corev1.Event {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for {
		events, err := lab.Kube.CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			for _, e := range events.Items {
				if e.Reason == reason && e.InvolvedObject.Kind == "RayCluster" && e.InvolvedObject.Name == s.name {
					return e
				}
			}
		}
		if ctx.Err() != nil {
			s.Fatal(errors.Join(fmt.Errorf("waiting for an Event %s on the RayCluster", reason), err))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// until waits until holds returns true.
func (s *scene) until(what string, holds func() bool) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for !holds() {
		if ctx.Err() != nil {
			s.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// drainedBeforeStopped asserts that Ray drained every stopped worker before its pod was deleted.
func (s *scene) drainedBeforeStopped() {
	s.Helper()
	for _, pod := range rig.StoppedUndrained(s.journal.Facts(), "") {
		s.Errorf("pod %s was stopped before Ray had drained it", pod)
	}
}

// ownedCluster waits for the RayCluster that the operator creates for the RayJob or RayService in the namespace.
func (s *scene) ownedCluster() string {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for {
		clusters, err := lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(clusters.Items) == 1 {
			return clusters.Items[0].GetName()
		}
		if ctx.Err() != nil {
			s.Fatal(errors.Join(errors.New("waiting for the operator to make a RayCluster"), err))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// task, actor and release are the most common commands. Work runs until it is released.
func task(id string, gpus float64) rig.Command  { return rig.Command{Do: "task", ID: id, GPUs: gpus} }
func actor(id string, gpus float64) rig.Command { return rig.Command{Do: "actor", ID: id, GPUs: gpus} }
func release(id string) rig.Command             { return rig.Command{Do: "release", ID: id} }
