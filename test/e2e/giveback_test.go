package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/test/rig"
)

// giveBack asks over REST, and returns what is agreed.
func (s *scene) giveBack(body string) (state giveback.State) {
	s.Helper()
	s.must(json.Unmarshal(s.rest(http.MethodPost, "/give_back", body), &state))
	return state
}

// TestGPUsAreGivenBack takes GPUs from a RayCluster with an idle worker, one with a task and one with an actor, which Ray
// tries again. First the idle one goes, and its group is held down. Then both others go by force, at the deadline and
// not before, and their work runs again after the reservation.
func TestGPUsAreGivenBack(t *testing.T) {
	t.Parallel()
	one := rig.Group{Name: "gpu", Max: 3, Devices: map[string]int64{"nvidia.com/gpu": 1}}
	s := stage(t, rig.Cluster{Name: "giveback", IdleSeconds: 600, Groups: []rig.Group{one}})
	driver := s.drive()
	again := func(do, id string) rig.Command { return rig.Command{Do: do, ID: id, GPUs: 1, Restarts: -1} }
	s.do(driver, again("task", "task"), again("actor", "actor"), actor("short", 1))
	works := []string{s.see(driver, "task", "running").Pod, s.see(driver, "actor", "running").Pod}
	s.see(driver, "short", "running")
	s.workers("gpu", 3)
	s.do(driver, release("short"))

	s.step("the idle worker is shown, and then given back")
	s.until("the idle worker costs nothing", func() bool {
		state := s.giveBack(`{"gpus": 1, "group": "gpu", "dryRun": true, "force": true}`)
		return len(state.Workers) == 1 && state.Workers[0].Why == "idle"
	})
	agreed := s.giveBack(`{"gpus": 1, "group": "gpu", "deadlineSeconds": 60}`)
	left := s.workers("gpu", 2)
	if len(agreed.Workers) != 1 || strings.Contains(strings.Join(left, " "), agreed.Workers[0].Pod) {
		s.Errorf("agreed on %+v, and %v are left", agreed.Workers, left)
	}
	s.until("all is given back", func() bool {
		var now giveback.State
		s.must(json.Unmarshal(s.rest(http.MethodGet, "/give_back", ""), &now))
		return now.Given == 1
	})

	s.step("its group is held down, and more is refused without force")
	s.do(driver, task("more", 1))
	s.told("that the group is held down", func(st status) bool {
		return st.unmet("capped") && st.group("gpu").because("quota", "give-back of 1 GPU")
	})
	s.quiet("the group is held down")
	s.rest(http.MethodDelete, "/give_back", "")
	s.see(driver, "more", "running")
	s.workers("gpu", 3)
	path := "/v1/namespaces/" + s.namespace + "/rayclusters/" + s.name + "/give_back"
	var code int
	var text []byte
	s.until("an answer that stays", func() bool { // "not now" while a report of Ray is late, or a pod waits
		var err error
		code, text, err = fleet.Call(s.ctx, http.MethodPost, path, `{"gpus": 2, "group": "gpu"}`)
		return err == nil && !strings.Contains(string(text), giveback.ErrNotNow.Error())
	})
	if code != http.StatusConflict || !strings.Contains(string(text), "with force all can") {
		s.Errorf("without force: status %d: %s", code, text)
	}

	s.step("all three go by force, those with work at the deadline; what Ray tries again runs again afterwards")
	s.do(driver, release("more"))
	s.see(driver, "more", "released")
	agreed = s.giveBack(`{"gpus": 3, "group": "gpu", "deadlineSeconds": 60, "force": true}`)
	s.workers("gpu", 0)
	for _, pod := range works {
		stopped, gone := rig.OfPod(s.journal.Facts(), pod, rig.PodStopping)
		if early := agreed.Deadline.Sub(stopped); !gone || early > time.Second {
			s.Errorf("%s has work and was stopped %v before the deadline", pod, early)
		}
	}
	s.rest(http.MethodDelete, "/give_back", "")
	for _, id := range []string{"task", "actor"} {
		s.seen(driver, id, "running", 2)
	}
	s.k8sEvent("GiveBackBegins")
	s.workers("gpu", 2)
}
