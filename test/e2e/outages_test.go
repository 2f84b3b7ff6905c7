package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/rig"
)

// TestTheLoopOutlivesItsParts kills or stops one part after the other under one RayCluster: a worker, the API server,
// the operator, Heliostat, a leader, and at last the Ray head. Meanwhile, two owners request capacity. The test asks for
// work while a part is down. After that, one worker serves it, and an actor is alive throughout. No other test runs at
// the same time.
func TestTheLoopOutlivesItsParts(t *testing.T) {
	s := stage(t, rig.Cluster{Name: "outages", IdleSeconds: 600, Groups: []rig.Group{cpu, gpu}})
	driver := s.drive()

	s.step("the kind of requests is not installed: plain requests work, and those of owners are refused")
	if code := s.keeps("bob", `{"holdUntilDeleted": true, "bundles": [{"resources": {"GPU": 1}}]}`); code != http.StatusNotImplemented {
		t.Errorf("without the kind a request with an owner is answered %d", code)
	}
	witness := rig.Command{Do: "actor", ID: "witness", CPUs: 2}
	s.do(driver, witness)
	requested := s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"CPU": 2}, {"CPU": 2}]}`)
	at := s.see(driver, "witness", "running").Pod
	asks := 0
	answers := func() {
		t.Helper()
		s.do(driver, rig.Command{Do: "ask", ID: "witness"})
		if asks++; s.seen(driver, "witness", "answered", asks).Pod != at {
			t.Errorf("the witness is not on %s any more", at)
		}
	}

	s.step("an idle worker that the request keeps dies")
	two := s.workers("cpu", 2)
	victim := two[0]
	if victim == at {
		victim = two[1]
	}
	s.must(rig.Crash(victim, "raylet"))
	s.eventually("Ray to miss the worker", func(facts []rig.Fact) bool {
		_, ok := rig.OfPod(facts, victim, rig.Drained)
		return ok
	})
	s.living("cpu", 2)
	s.eventually("no worker too many", func(facts []rig.Fact) bool { return len(rig.Living(facts, "cpu")) == 2 })
	answers()
	s.created("gpu", 0)
	if pods := s.workersEver("cpu"); len(pods) > 3 {
		s.Errorf("one worker was lost, and there were %v", pods)
	}

	s.step("the API server dies")
	s.must(lab.Cluster.KillPart(devcluster.APIServer))
	s.do(driver, task("first", 1))
	s.told("a worker that cannot be launched", func(st status) bool { return st.group("gpu").Desired == 1 })
	ctx, cancel := s.patient()
	defer cancel()
	s.must(lab.Cluster.RestartPart(ctx, devcluster.APIServer))
	s.see(driver, "first", "running")
	answers()
	s.created("gpu", 1)

	s.step("the operator dies, and a RayCluster that typed clients cannot decode would blind the next one")
	s.must(lab.Cluster.KillPart(devcluster.Operator))
	s.undecodable("bad")
	s.do(driver, task("second", 1))
	s.patchedTo("gpu", 2)
	neighbour := &scene{T: t, ctx: s.ctx, namespace: s.namespace, name: "bad", journal: s.journal}
	neighbour.told("the field that cannot be read", func(st status) bool {
		return slices.ContainsFunc(st.Findings, func(f struct{ Code, Field string }) bool { return strings.HasSuffix(f.Field, "replicas") })
	})
	s.must(lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).Delete(s.ctx, "bad", metav1.DeleteOptions{}))
	s.must(lab.Cluster.RestartPart(ctx, devcluster.Operator))
	s.see(driver, "second", "running")
	answers()
	s.created("gpu", 2)

	s.step("the kind is installed: the requests of two owners add up, and nothing more is launched for the plain one")
	s.must(rig.InstallCRDs(s.ctx, lab.Dynamic))
	s.apply("ann", `{"rayCluster": "outages", "owner": "ann", "leaseSeconds": 3600, "bundles": [{"resources": {"GPU": 1}, "count": 2}]}`)
	const bobs = `{"holdUntilDeleted": true, "bundles": [{"resources": {"GPU": 1}}]}`
	s.until("the kind to be noticed", func() bool { return s.keeps("bob", bobs) == http.StatusCreated })
	for _, id := range []string{"ann", "bob"} {
		if got := s.waitFor(id); got.State != "Satisfied" || len(got.Groups) != 1 || len(got.Pods) != int(got.Groups[0].Pods) {
			t.Errorf("request %s ends as %+v", id, got)
		}
	}
	held := s.workers("gpu", 3)
	s.until("what kubectl shows of ann's request", func() bool {
		return s.state("ann") == "Satisfied" && len(s.requestObject("ann").GetOwnerReferences()) == 1
	})

	s.step("Heliostat dies and is replaced by one with leader election: idle workers stay for the requests alone")
	s.elects()
	s.do(driver, release("first"), release("second"))
	s.idleTimeout(2)
	s.idleFor(2*time.Second, held...)
	s.quiet("all requests hold through the restart, idle as the workers are")
	if living := rig.Living(s.journal.Facts(), "gpu"); !slices.Equal(living, held) {
		t.Errorf("workers %v before and %v after the restart", held, living)
	}
	if diff := cmp.Diff(string(requested), string(s.rest(http.MethodGet, "/request_resources", ""))); diff != "" {
		s.Errorf("the plain request after all restarts (-before +after):\n%s", diff)
	}

	s.step("the lease of one owner expires, and its workers go")
	s.patchRequest("ann", `{"spec": {"leaseSeconds": 1}}`)
	s.k8sEvent("RequestExpired")
	s.workers("gpu", 1)
	s.until("word that ann's request has expired", func() bool { return s.state("ann") == "Expired" })
	if got := s.waitFor("bob"); got.State != "Satisfied" || got.Groups[0].Pods != 1 {
		t.Errorf("after ann's lease bob's request is %+v", got)
	}
	s.quiet("bob's worker is kept beyond its idle timeout")
	s.idleTimeout(600)

	s.step("the API server is silent: the leader ends, and the next one waits for it")
	s.losesTheAPIServer("bob", bobs)
	s.do(driver, task("third", 1), task("fourth", 1))
	s.see(driver, "third", "running")
	s.see(driver, "fourth", "running")
	answers()
	if got := s.waitFor("bob"); got.State != "Satisfied" {
		t.Errorf("the request that stood is %+v", got)
	}
	s.created("gpu", 4)

	s.step("the leader of two replicas dies")
	s.losesItsLeader(driver)
	answers()
	s.created("gpu", 5)
	if lost := driver.Lost(); len(lost) > 0 {
		s.Errorf("work was lost: %+v", lost)
	}

	s.step("without work and requests, all workers go but one that is requested")
	for _, id := range []string{"third", "fourth", "taken-over", "witness"} {
		s.do(driver, release(id))
	}
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"CPU": 2}]}`)
	s.rest(http.MethodDelete, "/request_resources/ann", "")
	s.rest(http.MethodDelete, "/request_resources/bob", "")
	s.idleTimeout(2)
	s.workers("gpu", 0)
	s.workers("cpu", 1)
	s.drainedBeforeStopped()
	s.idleTimeout(600)
	s.losesItsHead()
}

// idleFor waits until Ray has said of these workers for so long that they are idle.
func (s *scene) idleFor(long time.Duration, pods ...string) {
	s.Helper()
	s.until("workers to be idle", func() bool {
		facts := s.journal.Facts()
		return !slices.ContainsFunc(pods, func(pod string) bool {
			var last rig.Fact
			for _, f := range facts {
				if f.Pod == pod && (f.Stage == rig.NodeIdle || f.Stage == rig.NodeBusy) {
					last = f
				}
			}
			return last.Stage != rig.NodeIdle || time.Since(last.At) < long
		})
	})
}

// undecodable creates a RayCluster that typed clients cannot decode: an operator that lists it sees no RayCluster.
func (s *scene) undecodable(name string) {
	s.Helper()
	bad := rig.Cluster{Namespace: s.namespace, Name: name, Groups: []rig.Group{gpu}}.Manifest()
	groups, _, err := unstructured.NestedSlice(bad.Object, "spec", "workerGroupSpecs")
	s.must(err)
	groups[0].(map[string]any)["replicas"] = int64(2147483648)
	s.must(unstructured.SetNestedSlice(bad.Object, groups, "spec", "workerGroupSpecs"))
	s.must(lab.Create(s.ctx, bad))
}

func restartFleet(ctx context.Context) error {
	started, err := serve(ctx)
	if err == nil {
		fleet = started
	}
	return err
}

// losesItsHead kills the GCS. Ray ends the workers and the work with it. The REST request is still in the RayCluster,
// and the loop continues with the new session.
func (s *scene) losesItsHead() {
	s.Helper()
	s.step("the Ray head dies")
	old, err := lab.HeadPod(s.ctx, s.namespace, s.name)
	s.must(err)
	session, gpus, cpus := s.session(), len(s.workersEver("gpu")), len(s.workersEver("cpu"))
	s.must(rig.Crash(old.Name, "gcs_server"))
	s.until("the head to come back", func() bool { now := s.session(); return now != "" && now != session })
	driver := s.drive()
	s.do(driver, task("again", 1))
	s.see(driver, "again", "running")
	s.workers("gpu", 1)
	s.living("cpu", 1)
	s.created("gpu", gpus+1)
	// The lost worker's container restarts in its pod, or a new pod replaces it later. Both must not exist at once.
	if pods := s.workersEver("cpu"); len(pods) > cpus+1 {
		s.Errorf("group cpu had %d workers in all, %d before: want at most one in place of the lost one: %v", len(pods), cpus, pods)
	}
}

// session returns the name of the head's Ray session, or "" while the head does not respond.
func (s *scene) session() string {
	s.Helper()
	client, err := lab.GCS(s.ctx, s.namespace, s.name)
	if err != nil {
		return ""
	}
	defer client.Close()
	state, err := client.State(s.ctx)
	if err != nil {
		return ""
	}
	return state.Session
}

// living waits until Ray has exactly n living workers of the group that are not draining.
func (s *scene) living(group string, n int) {
	s.Helper()
	s.rayHas(group, n, raydemand.Running, raydemand.Idle)
}

// rayHas waits until the GCS lists exactly n workers of the group with one of the statuses.
func (s *scene) rayHas(group string, n int, statuses ...raydemand.NodeStatus) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for {
		got := s.listed(ctx, group, statuses)
		if got == n {
			return
		}
		if ctx.Err() != nil {
			s.Fatalf("Ray has %d workers of group %s that are %v, want %d", got, group, statuses, n)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// listed returns the number of workers of a group that the GCS lists, or -1 while the GCS does not respond.
func (s *scene) listed(ctx context.Context, group string, statuses []raydemand.NodeStatus) int {
	client, err := lab.GCS(ctx, s.namespace, s.name)
	if err != nil {
		return -1
	}
	defer client.Close()
	state, err := client.State(ctx)
	if err != nil {
		return -1
	}
	n := 0
	for _, node := range state.Nodes {
		if node.Group == group && slices.Contains(statuses, node.Status) {
			n++
		}
	}
	return n
}

// losesTheAPIServer pauses the API server. The leader cannot renew its lease, so it returns an error to a caller that
// puts a request again, and exits. The new process waits for the API server.
func (s *scene) losesTheAPIServer(id, body string) {
	s.Helper()
	letGo, err := lab.Cluster.HoldPart(devcluster.APIServer)
	s.must(err)
	// a second call, if the test succeeded
	s.Cleanup(func() { _ = letGo() })
	// the write may still happen, and changes nothing
	status, answer, err := fleet.Call(s.ctx, http.MethodPut, rig.RequestPath(s.namespace, s.name)+"/"+id, body)
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(string(answer), "the server is shutting down") {
		s.Fatalf("a call under way when the lease is lost: %d, %v: %s", status, err, answer)
	}
	ctx, cancel := s.patient()
	defer cancel()
	select {
	case <-fleet.Ended():
	case <-ctx.Done():
		s.Fatal("the leader does not end")
	}
	next, failed := make(chan *rig.Heliostat, 1), make(chan error, 1)
	go func() {
		started, err := serve(ctx, "--leader-elect")
		if err != nil {
			failed <- err
			return
		}
		next <- started
	}()
	select {
	case err := <-failed:
		s.Fatalf("it does not wait for the API server: %v", err)
	case started := <-next:
		fleet = started
		s.Fatal("it is ready without an API server")
	case <-time.After(7 * time.Second): // longer than a call to the API server may take
	}
	s.must(letGo())
	select {
	case err := <-failed:
		s.Fatal(err)
	case fleet = <-next:
	}
}

// losesItsLeader kills the leader of two replicas. New work waits while nobody leads. Then the other replica serves it.
func (s *scene) losesItsLeader(driver *rig.Driver) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	next, err := serve(ctx, "--leader-elect")
	s.must(err)
	fleet.Kill()
	lost := time.Now()
	fleet = next
	s.do(driver, task("taken-over", 1))
	s.eventually("the next leader to write", func(facts []rig.Fact) bool {
		_, written := rig.First(facts, func(f rig.Fact) bool { return f.Stage == rig.GroupPatched && f.At.After(lost) })
		return written
	})
	s.Logf("the next leader wrote %v after the loss of the first", time.Since(lost).Round(time.Millisecond))
	s.see(driver, "taken-over", "running")
}

// elects replaces the shared Heliostat, until the test ends, with one that uses leader election.
func (s *scene) elects() {
	s.Helper()
	exchange := func(arguments ...string) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		fleet.Kill()
		started, err := serve(ctx, arguments...)
		s.must(err)
		fleet = started
	}
	s.Cleanup(func() { exchange() })
	exchange("--leader-elect")
	s.rest(http.MethodGet, "", "") // returns once Heliostat is the leader
}

// ownedRequest is a request as the REST API returns it.
type ownedRequest struct {
	State  string
	Reason struct{ Code, Message string }
	Groups []struct {
		Name string
		Pods int32
	}
	Pods []string
}

// keeps puts a request and returns the status code.
func (s *scene) keeps(id, body string) int {
	s.Helper()
	path := fmt.Sprintf("/v1/namespaces/%s/rayclusters/%s/request_resources/%s", s.namespace, s.name, id)
	code, _, err := fleet.Call(s.ctx, http.MethodPut, path, body)
	s.must(err)
	return code
}

// waitFor returns the request when it is no longer waiting.
func (s *scene) waitFor(id string) ownedRequest {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for {
		var got ownedRequest
		s.must(json.Unmarshal(s.rest(http.MethodGet, "/request_resources/"+id, ""), &got))
		if got.State != "Waiting" || ctx.Err() != nil {
			return got
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (s *scene) apply(name, spec string) {
	s.Helper()
	object := &unstructured.Unstructured{}
	s.must(json.Unmarshal(fmt.Appendf(nil, `{"apiVersion": "heliostat.dev/v1alpha1", "kind": "ResourceRequest", "metadata": {"name": %q, "namespace": %q}, "spec": %s}`,
		name, s.namespace, spec), object))
	// The API server serves a new kind with a short delay.
	s.until("the API server to take a request", func() bool {
		_, err := lab.Dynamic.Resource(rig.ResourceRequests).Namespace(s.namespace).Create(s.ctx, object, metav1.CreateOptions{})
		return err == nil
	})
}

func (s *scene) requestObject(name string) *unstructured.Unstructured {
	s.Helper()
	object, err := lab.Dynamic.Resource(rig.ResourceRequests).Namespace(s.namespace).Get(s.ctx, name, metav1.GetOptions{})
	s.must(err)
	return object
}

func (s *scene) patchRequest(name, merge string) {
	s.Helper()
	_, err := lab.Dynamic.Resource(rig.ResourceRequests).Namespace(s.namespace).Patch(s.ctx, name, types.MergePatchType, []byte(merge), metav1.PatchOptions{})
	s.must(err)
}

// state returns the state in the status of a ResourceRequest.
func (s *scene) state(name string) string {
	s.Helper()
	state, _, err := unstructured.NestedString(s.requestObject(name).Object, "status", "state")
	s.must(err)
	return state
}
