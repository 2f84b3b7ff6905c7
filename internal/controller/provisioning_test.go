package controller

import (
	"errors"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/addon/provisioning"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// provisioningWorld has a group that asks for ProvisioningRequests, and a placement group that waits for four of its
// pods.
func provisioningWorld(t *testing.T, config Config) *world {
	w := newWorld(t, config, gpuGroup("gpu", 0, 0, 9))
	w.group("gpu").Provisions = true
	w.kube.cluster.Provisioning = &nodepool.Provisioning{}
	w.ray.demand.Gangs = []raydemand.Gang{gang("aa", gpu(1), gpu(1), gpu(1), gpu(1))}
	return w
}

// answer sets the state of the only request.
func (w *world) answer(state nodepool.ProvisioningState) {
	w.t.Helper()
	if n := len(w.kube.cluster.Provisioning.Requests); n != 1 {
		w.t.Fatalf("there are %d ProvisioningRequests, want 1", n)
	}
	request := w.kube.cluster.Provisioning.Requests[0]
	request.State, request.Since = state, w.now
	w.kube.cluster.Provisioning = &nodepool.Provisioning{Requests: []nodepool.ProvisioningRequest{request}}
}

func (w *world) consuming() (pods int) {
	for _, p := range w.kube.cluster.Workers {
		if p.Consumes != "" {
			pods++
		}
	}
	return pods
}

func waits(d *addon.Decision) bool {
	first := d.Plan.Groups[0].Reasons[0]
	return first.Code == planner.CodeProvisioning && strings.HasPrefix(first.Message, "waits for ProvisioningRequest ")
}

func TestAGangIsLaunchedWhenItsNodesAreThere(t *testing.T) {
	w := provisioningWorld(t, Config{})
	if d := w.cycle(); !waits(d) {
		t.Errorf("reasons %v", d.Plan.Groups[0].Reasons)
	}
	w.kube.cluster.Provisioning.Requests[0].CreatedAt = w.now
	w.seconds(20)
	w.nothingWritten("the nodes are not there")
	if asked := len(w.kube.provisions); asked != 1 {
		t.Errorf("%d writes of ProvisioningRequests, want 1", asked)
	}
	w.answer(nodepool.CapacityProvisioned)
	w.after(time.Second)
	w.patchedTo(4, "the nodes are there")
	w.operate()
	w.after(time.Second)
	w.after(time.Second)
	if got := w.consuming(); got != 4 {
		t.Errorf("%d pods use the capacity, want 4", got)
	}
	for i := range w.kube.cluster.Workers {
		w.kube.cluster.Workers[i].Node = "machine"
	}
	w.after(time.Second)
	if left := len(w.kube.cluster.Provisioning.Requests); left > 0 {
		t.Errorf("%d ProvisioningRequests are left", left)
	}
}

// The request is stored, and its answer is lost: pods without it would get nodes beside those that it gets.
func TestALaunchWaitsForARequestWhoseAnswerWasLost(t *testing.T) {
	w := provisioningWorld(t, Config{})
	w.kube.lostAnswer = errors.New("the connection was reset")
	w.cycle()
	w.kube.lostAnswer = nil
	w.kube.cluster.Provisioning.Requests[0].CreatedAt = w.now
	if d := w.seconds(20); !waits(d) {
		t.Errorf("reasons %v", d.Plan.Groups[0].Reasons)
	}
	w.nothingWritten("the nodes are not there")
	if left := len(w.kube.cluster.Provisioning.Requests); left != 1 {
		t.Errorf("%d ProvisioningRequests, want the one that was made", left)
	}
}

func TestALaunchThatCanHaveNoProvisioningRequestIsNotDelayed(t *testing.T) {
	for finding, begin := range map[string]func(*world){
		provisioning.ProvisioningUnwritten: func(w *world) { w.kube.provisionErr = errors.New("forbidden") },
		provisioning.ProvisioningUnused:    func(w *world) { w.kube.cluster.Provisioning = nil },
	} {
		w := provisioningWorld(t, Config{})
		begin(w)
		if d := w.cycle(); !hasFinding(d, finding) {
			t.Errorf("no finding %s", finding)
		}
		w.after(time.Second)
		if got := w.lastChange().Replicas; got != 4 {
			t.Errorf("%s: replicas %d, want 4", finding, got)
		}
	}
}

func TestARayClusterInShadowHasNoProvisioningRequest(t *testing.T) {
	w := provisioningWorld(t, Config{DefaultMode: nodepool.Shadow})
	if d := w.cycle(); waits(d) || len(w.kube.provisions) > 0 {
		t.Errorf("reasons %v, writes %v", d.Plan.Groups[0].Reasons, w.kube.provisions)
	}
	w = provisioningWorld(t, Config{})
	w.cycle()
	w.kube.cluster.Mode = nodepool.Shadow // handed back
	w.after(time.Second)
	if left := len(w.kube.cluster.Provisioning.Requests); left > 0 {
		t.Errorf("%d ProvisioningRequests are left", left)
	}
}
