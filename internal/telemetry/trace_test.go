package telemetry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"heliostat.dev/heliostat/internal/addon"
)

func TestASpanHasAChildForEachPartOfTheCycle(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := tracerTo(sdktrace.WithSyncer(spans))
	_, span := tracer.Begin(t.Context(), "ml", "llm", noon)
	span.End(CycleReport{At: noon, Export: true, Observed: time.Second, Waited: 4 * time.Second, Planned: 2 * time.Second, Applied: 3 * time.Second,
		Mode: "managed", Actions: []addon.Action{{At: noon, Kind: addon.ActionDrain, Result: addon.ResultOK, Group: "gpu", Pods: []string{"gpu-1"}, Message: "XID 79 on GPU-3 of node n7"}, {At: noon, Kind: "patch", Result: "error"}}, Reasons: []string{"launch"}, Err: "patching RayCluster: conflict"})
	type part struct {
		Name       string
		From, Took time.Duration
	}
	var got []part
	all := spans.GetSpans()
	root := all[len(all)-1]
	for _, s := range all {
		got = append(got, part{s.Name, s.StartTime.Sub(noon), s.EndTime.Sub(s.StartTime)})
		if s.Name != "cycle" && s.Parent.SpanID() != root.SpanContext.SpanID() {
			t.Errorf("%s is no child of the cycle", s.Name)
		}
	}
	want := []part{{"observe", 0, time.Second}, {"wait", time.Second, 4 * time.Second}, {"plan", 5 * time.Second, 2 * time.Second}, {"apply", 7 * time.Second, 3 * time.Second}, {"cycle", 0, 10 * time.Second}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	attributes := map[string]string{}
	for _, a := range root.Attributes {
		attributes[string(a.Key)] = a.Value.String()
	}
	if diff := cmp.Diff(map[string]string{"k8s.namespace.name": "ml", "ray.cluster": "llm", "heliostat.mode": "managed",
		"heliostat.actions": `["drain-ok","patch-error"]`, "heliostat.reasons": `["launch"]`}, attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	drain := root.Events[0]
	if text := fmt.Sprint(drain.Name, drain.Attributes); len(root.Events) != 2 || !strings.Contains(text, "XID 79 on GPU-3 of node n7") || !strings.Contains(text, "gpu-1") {
		t.Errorf("events = %+v, want the drain with its cause, and the patch", root.Events)
	}
	if root.Status.Code != codes.Error || root.Status.Description != "patching RayCluster: conflict" {
		t.Errorf("status = %+v", root.Status)
	}
}

func TestASpanThatIsNotReportedIsNotExported(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := tracerTo(sdktrace.WithSyncer(spans))
	tracer.Begin(t.Context(), "ml", "llm", noon)
	if err := tracer.shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := spans.GetSpans(); len(got) != 0 {
		t.Errorf("%d spans, want none", len(got))
	}
}

// play runs a tracer cycle by cycle and keeps the exported spans.
type play struct {
	*testing.T
	tracer *Tracer
	spans  *tracetest.InMemoryExporter
	// seen are the pods of each cycle, by name.
	seen map[string]actor
}

// actor is a pod, with the times of its creation and of its binding to a node, in seconds after noon.
type actor struct {
	group              string
	created, scheduled float64
	alive              bool
}

func newPlay(t *testing.T, options ...sdktrace.TracerProviderOption) *play {
	spans := tracetest.NewInMemoryExporter()
	return &play{T: t, tracer: tracerTo(append(options, sdktrace.WithSyncer(spans))...), spans: spans, seen: map[string]actor{}}
}

func second(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }

// cycle runs one cycle. change can add actions to its report.
func (p *play) cycle(at float64, change func(*CycleReport)) {
	_, span := p.tracer.Begin(p.Context(), "ml", "llm", second(at))
	report := CycleReport{At: second(at), Cycle: Cycle{At: second(at), Moments: p.moments}}
	report.Cycle.Pods = func(yield func(Pod) bool) {
		for name, a := range p.seen {
			if !yield(Pod{Name: name, Group: a.group, Alive: a.alive}) {
				return
			}
		}
	}
	if change != nil {
		change(&report)
	}
	if report.Export || span.Follows() {
		span.End(report)
	}
}

// caller is the trace of a caller of the REST API.
const caller = "0af7651916cd43dd8448eb211c80319c"

// calls is a call that requests resources, whose request was stored at once.
func (p *play) calls(at float64) {
	id, _ := trace.TraceIDFromHex(caller)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{7}, TraceFlags: trace.FlagsSampled})
	p.tracer.calls["ml/llm"] = &call{span: span, at: second(at), stored: second(at)}
}

func (p *play) moments(pod string) (created, scheduled time.Time) {
	a := p.seen[pod]
	if a.scheduled > 0 {
		scheduled = second(a.scheduled)
	}
	return second(a.created), scheduled
}

// grows makes a cycle patch growth that has been wanted since the given time.
func grows(wanted, at float64, group string, pods int) func(*CycleReport) {
	return func(t *CycleReport) {
		t.Export, t.GrowthWanted = true, second(wanted)
		t.Cycle.SeenToPatched = second(at).Sub(second(wanted))
		t.Cycle.Actions = []Action{{Kind: "patch", Result: "ok", At: second(at), Group: group, Grown: group, Pods: pods}}
	}
}

func shrinks(at float64, group string, pods int) func(*CycleReport) {
	return func(t *CycleReport) {
		t.Export = true
		t.Cycle.Actions = []Action{{Kind: "patch", Result: "ok", At: second(at), Group: group, Pods: -pods}}
	}
}

// tree formats all spans of a trace as a tree, with their seconds.
func (p *play) tree(id string) string {
	var out strings.Builder
	all := p.spans.GetSpans()
	slices.SortStableFunc(all, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for _, s := range all {
			if s.SpanContext.TraceID().String() != id || s.Parent.SpanID().String() != parent {
				continue
			}
			fmt.Fprintf(&out, "%s%s %v-%v", indent, s.Name, s.StartTime.Sub(noon).Seconds(), s.EndTime.Sub(noon).Seconds())
			for _, a := range s.Attributes {
				if key := string(a.Key); key == "k8s.pod.name" || key == "heliostat.outcome" {
					fmt.Fprintf(&out, " %s", a.Value.String())
				}
			}
			if s.Status.Code == codes.Error {
				fmt.Fprintf(&out, " (%s)", s.Status.Description)
			}
			for _, e := range s.Events {
				fmt.Fprintf(&out, " [%s %v]", e.Name, e.Time.Sub(noon).Seconds())
			}
			out.WriteByte('\n')
			if s.Name != "cycle" {
				write(s.SpanContext.SpanID().String(), indent+"  ")
			}
		}
	}
	write("0000000000000000", "")
	return out.String()
}

// roots returns the scale-ups that have ended.
func (p *play) roots() (roots []tracetest.SpanStub) {
	for _, s := range p.spans.GetSpans() {
		if s.Name == "scale-up" {
			roots = append(roots, s)
		}
	}
	return roots
}

func (p *play) only() tracetest.SpanStub {
	p.Helper()
	roots := p.roots()
	if len(roots) != 1 {
		p.Fatalf("%d scale-ups have ended, want one", len(roots))
	}
	return roots[0]
}

func TestAScaleUpIsOneTraceFromTheFirstRequestToTheLastRayNode(t *testing.T) {
	p := newPlay(t)
	p.cycle(0, nil)
	// The first patch returns a conflict; the second succeeds.
	p.cycle(1, func(report *CycleReport) {
		report.Export, report.GrowthWanted, report.Err = true, second(1), "conflict"
	})
	p.cycle(2, grows(1, 2, "gpu", 2))
	p.seen["a"], p.seen["b"] = actor{group: "gpu", created: 2}, actor{group: "gpu", created: 2}
	p.cycle(3, nil)
	p.seen["a"] = actor{group: "gpu", created: 2, scheduled: 4}
	p.cycle(5, nil)
	// b is evicted, and the operator creates c as its replacement.
	delete(p.seen, "b")
	p.seen["c"] = actor{group: "gpu", created: 6}
	p.cycle(7, nil)
	p.seen["a"] = actor{group: "gpu", created: 2, scheduled: 4, alive: true}
	p.cycle(8, nil)
	p.seen["c"] = actor{group: "gpu", created: 6, scheduled: 9, alive: true}
	p.cycle(12, nil)
	p.cycle(13, nil)
	want := `scale-up 1-12 alive (2 of 2 pods joined Ray, 1 were lost)
  cycle 1-1 (conflict)
  seen_to_patched 1-2
  cycle 2-2
  pod 2-7 b (the pod is gone before it had a node)
  pod 2-8 a
    patched_to_scheduled 2-4
    scheduled_to_alive 4-8
  pod 2-12 c
    patched_to_scheduled 2-9
    scheduled_to_alive 9-12
`
	if diff := cmp.Diff(want, p.tree(p.only().SpanContext.TraceID().String())); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
}

func TestAPodThatNobodySawOnItsWayHasArrivedAllTheSame(t *testing.T) {
	p := newPlay(t)
	p.seen["old"] = actor{group: "gpu", created: -100, scheduled: -90, alive: true}
	p.cycle(1, grows(1, 1, "gpu", 1))
	p.cycle(2, func(report *CycleReport) { report.Cycle.Pods = nil })
	p.seen["a"] = actor{group: "gpu", created: 2, scheduled: 3, alive: true}
	p.cycle(9, nil)
	if root := p.only(); !root.EndTime.Equal(second(9)) {
		t.Errorf("the scale-up ended at %v", root.EndTime)
	}
}

func TestAScaleUpThatACallAskedForIsPartOfTheCallersTrace(t *testing.T) {
	p := newPlay(t)
	p.cycle(0, nil)
	p.calls(1)
	ctx, _ := p.tracer.Begin(t.Context(), "ml", "llm", second(2))
	if got := trace.SpanContextFromContext(ctx).TraceID().String(); got != caller {
		t.Errorf("the cycle that answers the call logs the trace %s", got)
	}
	p.cycle(2, grows(2, 2, "gpu", 1))
	p.seen["a"] = actor{group: "gpu", created: 2, scheduled: 3, alive: true}
	p.cycle(4, nil)
	root := p.only()
	if root.Parent.SpanID() != (trace.SpanID{7}) {
		t.Errorf("the scale-up is below %s, want the call", root.Parent.SpanID())
	}
	if root.SpanContext.TraceID().String() != caller {
		t.Errorf("the scale-up is in trace %s", root.SpanContext.TraceID())
	}
	// Growth that is first wanted later does not belong to the call.
	p.cycle(5, grows(5, 5, "gpu", 1))
	p.seen["b"] = actor{group: "gpu", created: 5, scheduled: 6, alive: true}
	p.cycle(7, nil)
	if roots := p.roots(); len(roots) != 2 || roots[1].Parent.IsValid() {
		t.Errorf("%d scale-ups, the last of them below %v", len(roots), roots[len(roots)-1].Parent)
	}
}

func TestACallThatWasServedAtOnceOrLongAgoBeginsNoScaleUp(t *testing.T) {
	for name, c := range map[string]struct{ called, looked, grown float64 }{
		"served by what was there": {0, 1, 2},
		"long ago":                 {-3600, 0, 2},
	} {
		p := newPlay(t)
		p.calls(c.called)
		p.cycle(c.looked, nil)
		p.cycle(c.grown, grows(c.grown, c.grown, "gpu", 1))
		p.seen["a"] = actor{group: "gpu", created: c.grown, alive: true}
		p.cycle(9, nil)
		if root := p.only(); root.Parent.IsValid() {
			t.Errorf("%s: the scale-up is below %v", name, root.Parent)
		}
		if len(p.tracer.calls) != 0 {
			t.Errorf("%s: the call is kept", name)
		}
	}
}

// TestACallIsRememberedUntilItsRequestIsStored: a cycle that began before has not seen the request.
func TestACallIsRememberedUntilItsRequestIsStored(t *testing.T) {
	p := newPlay(t)
	_, end := p.tracer.Called(t.Context(), "request_resources", "ml", "llm")
	_, span := p.tracer.Begin(t.Context(), "ml", "llm", time.Now())
	span.End(CycleReport{})
	if len(p.tracer.calls) != 1 {
		t.Error("the call is forgotten before its request is stored")
	}
	end(errors.New("conflict"))
	if len(p.tracer.calls) != 0 {
		t.Error("a call that failed is remembered")
	}
}

func TestAProcessThatEndsReportsWhatItLeaves(t *testing.T) {
	p := newPlay(t)
	p.cycle(1, grows(1, 1, "gpu", 1))
	p.seen["a"] = actor{group: "gpu", created: 1}
	p.cycle(3, nil)
	p.tracer.interrupt(second(4))
	if root := p.only(); outcomeOf(root) != "interrupted" || !root.EndTime.Equal(second(4)) {
		t.Errorf("the scale-up ended as %s at %v", outcomeOf(root), root.EndTime)
	}
}

func outcomeOf(s tracetest.SpanStub) string {
	for _, a := range s.Attributes {
		if a.Key == "heliostat.outcome" {
			return a.Value.AsString()
		}
	}
	return ""
}

func TestAScaleUpIsFollowedForAnHour(t *testing.T) {
	p := newPlay(t)
	p.cycle(1, grows(1, 1, "gpu", 1))
	p.seen["a"] = actor{group: "gpu", created: 1}
	p.cycle(3700, nil)
	if root := p.only(); outcomeOf(root) != "unfinished" || root.Status.Code != codes.Error {
		t.Errorf("ended as %s, %v", outcomeOf(root), root.Status)
	}
}

func TestPodsThatAreNotWantedAnyMoreEndAScaleUp(t *testing.T) {
	p := newPlay(t)
	p.cycle(1, grows(1, 1, "gpu", 3))
	p.seen["a"] = actor{group: "gpu", created: 1, scheduled: 2, alive: true}
	p.cycle(4, nil)
	p.cycle(5, shrinks(5, "gpu", 2))
	if root := p.only(); outcomeOf(root) != "alive" || root.Status.Code == codes.Error {
		t.Errorf("ended as %s, %v", outcomeOf(root), root.Status)
	}
	q := newPlay(t)
	q.cycle(1, func(report *CycleReport) { report.GrowthWanted, report.Export = second(1), true })
	q.cycle(2, nil)
	if root := q.only(); outcomeOf(root) != "withdrawn" {
		t.Errorf("growth that is not wanted any more ended as %s", outcomeOf(root))
	}
}

func TestAThousandPodsHaveABoundedNumberOfSpansAndAreAllCounted(t *testing.T) {
	p := newPlay(t)
	p.cycle(1, grows(1, 1, "gpu", 1000))
	for i := range 1000 {
		p.seen[fmt.Sprint("pod-", i)] = actor{group: "gpu", created: 1, scheduled: 2}
	}
	p.cycle(3, nil)
	for name, a := range p.seen {
		a.alive = true
		p.seen[name] = a
	}
	p.cycle(9, nil)
	if spans := len(p.spans.GetSpans()); spans > queued {
		t.Errorf("%d spans, more than the queue to the collector holds", spans)
	}
	for _, a := range p.only().Attributes {
		if a.Key == "heliostat.pods.alive" && a.Value.AsInt64() != 1000 {
			t.Errorf("%d pods are alive", a.Value.AsInt64())
		}
	}
}

func TestScaleUpsThatNeverEndDoNotPileUp(t *testing.T) {
	p := newPlay(t)
	for i := range 2 * mostOpen {
		p.cycle(float64(i), grows(float64(i), float64(i), "gpu", 1))
	}
	if got := len(p.tracer.clusters["ml/llm"].open); got != mostOpen {
		t.Errorf("%d are followed, want %d", got, mostOpen)
	}
	p.tracer.Gone("ml", "llm", second(60))
	if got := len(p.roots()); got != 2*mostOpen || len(p.tracer.clusters) != 0 {
		t.Errorf("%d have ended with the RayCluster, want %d", got, 2*mostOpen)
	}
}

func TestACallThatIsNotSampledIsNotRemembered(t *testing.T) {
	p := newPlay(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	_, end := p.tracer.Called(t.Context(), "request_resources", "ml", "llm")
	end(nil)
	if len(p.tracer.calls) != 0 {
		t.Error("it is remembered")
	}
}
