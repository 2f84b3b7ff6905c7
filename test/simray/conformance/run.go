package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/simray"
)

// head is a target and its clients: Heliostat's client, and plain gRPC clients for requests that Heliostat's client
// rejects.
type head struct {
	Target
	ours       *gcs.Client
	autoscaler autoscalerpb.AutoscalerStateServiceClient
	nodes      raypb.NodeInfoGcsServiceClient
	resources  raypb.NodeResourceInfoGcsServiceClient
	actors     raypb.ActorInfoGcsServiceClient
	kv         raypb.InternalKVGcsServiceClient
	conn       *grpc.ClientConn
}

// callTimeout is longer than the client's default: a machine that runs many tests can delay a head for seconds.
const callTimeout = 30 * time.Second

// The workers of the list. The assertions use the names of their groups and labels.
var (
	gpuWorker = simray.Node{
		Instance: "conf-gpu-worker-a", Group: "gpu",
		Resources: raydemand.Bundle{"CPU": raydemand.Whole(2), "GPU": raydemand.One},
		Labels:    map[string]string{"zone": "a"},
	}
	cpuWorker = simray.Node{
		Instance: "conf-cpu-worker-b", Group: "cpu",
		Resources: raydemand.Bundle{"CPU": raydemand.Whole(2), "pin": raydemand.One},
		Labels:    map[string]string{"zone": "b"},
	}
)

// Run runs the whole list against the target. The order matters: each step leaves the head in the state that the next
// step expects. The last two steps restart and kill the head.
func Run(t *testing.T, target Target) {
	h := connect(t, target)
	steps := []struct {
		name string
		run  func(*testing.T, head)
	}{
		{"a head alone reports its version and session", headAlone},
		{"workers join with group, resources and labels", workersJoin},
		{"waiting tasks and actors show as shapes with counts", shapesWait},
		{"more than 100 shapes are cut, and the reply says so", shapesCut},
		{"label selectors show in canonical form, fallbacks in order", selectorsWait},
		{"placement groups show with their strategy", gangsWait},
		{"placement groups show bundle labels and topology", labelledGangsWait},
		{"request_resources is read once, from where the version keeps it", sdkRequests},
		{"a constraint by RPC is read back", constraintByRPC},
		{"reports show in the status, older ones do not", reports},
		{"key-value misses, unknown methods and wrong clusters return errors", refusals},
		{"a client that speaks TLS to a plain head gets a clear error", plainHead},
		{"a refused idle drain marks actors as preempted", drainRefused},
		{"actors show with their jobs and resources, ended ones last", actorsListed},
		{"a preempted busy node drains, works on and then dies", drainBusy},
		{"an idle node drains at once", drainIdle},
		{"drains of nil, unknown and dead nodes are accepted", drainNobody},
		{"a restarted head has a new session and counts from the start", restart},
		{"a version ahead of the counter kills the head", fatal},
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, h) }) {
			t.Fatalf("%q failed: the next steps would not find what they expect", step.name)
		}
	}
}

func connect(t *testing.T, target Target) head {
	t.Helper()
	ours, err := gcs.Dial(gcs.Config{Address: target.Addr(), Timeout: callTimeout})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///"+target.Addr(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close(); _ = conn.Close() })
	return head{
		Target: target, ours: ours, conn: conn,
		autoscaler: autoscalerpb.NewAutoscalerStateServiceClient(conn),
		nodes:      raypb.NewNodeInfoGcsServiceClient(conn),
		resources:  raypb.NewNodeResourceInfoGcsServiceClient(conn),
		actors:     raypb.NewActorInfoGcsServiceClient(conn),
		kv:         raypb.NewInternalKVGcsServiceClient(conn),
	}
}

// eventually polls until check returns no complaint. A real head needs seconds for what the simulated head shows at
// once.
func (h head) eventually(t *testing.T, check func() (complaint string)) {
	t.Helper()
	deadline := time.Now().Add(h.Patience())
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still after %v: %s", h.Patience(), complaint)
		}
		pause(t.Context(), 20*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (h head) state(t *testing.T) raydemand.State {
	t.Helper()
	state, err := h.ours.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Findings) > 0 {
		t.Fatalf("findings: %+v", state.Findings)
	}
	return state
}

// demands waits until the demand in the state equals want. The order of lines is ignored.
func (h head) demands(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	h.eventually(t, func() string { return cmp.Diff(want, demandLines(h.state(t).Demand)) })
}

// node waits until the node with the given instance has the given status, and returns it.
func (h head) node(t *testing.T, instance string, want raydemand.NodeStatus) (found raydemand.Node) {
	t.Helper()
	h.eventually(t, func() string {
		var seen []string
		for _, n := range h.state(t).Nodes {
			if n.Instance == instance && n.Status == want {
				found = n
				return ""
			}
			seen = append(seen, n.Instance+" "+string(n.Status))
		}
		return fmt.Sprintf("%s is not %s: %s", instance, want, strings.Join(seen, ", "))
	})
	return found
}

func demandLines(d raydemand.Demand) []string {
	var lines []string
	for _, r := range d.Requests {
		lines = append(lines, requestLine("", r))
	}
	for _, g := range d.Gangs {
		line := fmt.Sprintf("%s %v", g.Strategy, g.Bundles)
		if g.BundleSelectors != nil {
			line += fmt.Sprintf(" where %v", g.BundleSelectors)
		}
		if g.TopologyLabel != "" {
			line += " on one " + g.TopologyLabel
		}
		lines = append(lines, line)
	}
	for _, r := range d.Constraint {
		lines = append(lines, requestLine("at least ", r))
	}
	slices.Sort(lines)
	return lines
}

func requestLine(prefix string, r raydemand.Request) string {
	line := fmt.Sprintf("%s%d x %v", prefix, r.Count, r.Bundle)
	for i, s := range r.Selectors {
		line += []string{" where ", " else "}[min(i, 1)] + s.String()
	}
	return line
}
