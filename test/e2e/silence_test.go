package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/rig"
)

// TestALeaderMayLoseAnAPIServerThatIsSilent pauses the API server. The leader cannot renew its lease, so it returns an
// error to callers that wait for a response, and exits. The new process waits and then continues from the current
// state: busy and requested workers stay, and it serves new work. So does the other replica after the leader is killed.
func TestALeaderMayLoseAnAPIServerThatIsSilent(t *testing.T) {
	s := stage(t, rig.Cluster{Name: "silent", IdleSeconds: 5, Groups: []rig.Group{cpu, gpu}})
	s.must(rig.InstallCRDs(s.ctx, lab.Dynamic))
	driver := s.drive()
	s.do(driver, actor("witness", 1))
	const ask = `{"holdUntilDeleted": true, "bundles": [{"resources": {"CPU": 2}}]}`
	s.until("the request to be taken", func() bool { return s.keeps("ann", ask) == http.StatusCreated })
	s.see(driver, "witness", "running")
	s.workers("cpu", 1)
	s.elects()

	letGo, err := lab.Cluster.HoldPart(devcluster.APIServer)
	s.must(err)
	// a second call, if the test succeeded
	t.Cleanup(func() { _ = letGo() })
	// the write may still happen, and changes nothing
	status, answer, err := fleet.Call(s.ctx, http.MethodPut, rig.RequestPath(s.namespace, s.name)+"/ann", ask)
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(string(answer), "the server is shutting down") {
		t.Fatalf("a call under way when the lease is lost: %d, %v: %s", status, err, answer)
	}
	ctx, cancel := s.patient()
	defer cancel()
	select {
	case <-fleet.Ended():
	case <-ctx.Done():
		t.Fatal("the leader does not end")
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
		t.Fatalf("it does not wait for the API server: %v", err)
	case started := <-next:
		fleet = started
		t.Fatal("it is ready without an API server")
	case <-time.After(7 * time.Second): // longer than a call to the API server may take
	}
	s.must(letGo())
	select {
	case err := <-failed:
		t.Fatal(err)
	case fleet = <-next:
	}

	s.do(driver, task("after", 1))
	s.see(driver, "after", "running")
	s.do(driver, rig.Command{Do: "ask", ID: "witness"})
	s.see(driver, "witness", "answered")
	if got := s.waitFor("ann"); got.State != "Satisfied" {
		t.Errorf("the request that stood is %+v", got)
	}
	s.created("gpu", 2)
	s.losesItsLeader(driver)
	s.created("gpu", 3)
	s.created("cpu", 1)
	if lost := driver.Lost(); len(lost) > 0 {
		t.Errorf("work was lost: %+v", lost)
	}
}

// takeover is the longest time from the loss of a leader to the first write of the next one: the lease of 6 s, up to
// 1.8 s until the candidate reads it again, and time for busy cores.
const takeover = 15 * time.Second

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
	var at time.Time
	s.eventually("the next leader to write", func(facts []rig.Fact) bool {
		i := slices.IndexFunc(facts, func(f rig.Fact) bool { return f.Stage == rig.GroupPatched && f.At.After(lost) })
		if i >= 0 {
			at = facts[i].At
		}
		return i >= 0
	})
	if took := rig.Unhindered(lost, at); took > takeover {
		s.Errorf("the next leader wrote %v after the loss of the first, %v of it unhindered, want at most %v", at.Sub(lost), took, takeover)
	}
	s.see(driver, "taken-over", "running")
}

// elects replaces the shared Heliostat, until the test ends, with one that uses leader election.
func (s *scene) elects() {
	s.Helper()
	exchange := func(arguments ...string) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		fleet.Stop(ctx)
		started, err := serve(ctx, arguments...)
		s.must(err)
		fleet = started
	}
	s.Cleanup(func() { exchange() })
	exchange("--leader-elect")
	s.rest(http.MethodGet, "", "") // returns once Heliostat is the leader
}
