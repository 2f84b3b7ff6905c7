package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// lockedBuffer is a buffer that a command writes while a test reads it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
	return b.text.Write(text)
}

func (b *lockedBuffer) until(t *testing.T, want string) {
	t.Helper()
	for {
		b.mu.Lock()
		there, text := strings.Contains(b.text.String(), want), b.text.String()
		b.mu.Unlock()
		if there {
			return
		}
		select {
		case <-b.more:
		case <-time.After(20 * time.Second):
			t.Fatalf("want in it %q, got\n%s", want, text)
		}
	}
}

func TestAWatchShowsWhatChangedUntilTheCallerHasSeenEnough(t *testing.T) {
	r := newRemote(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, code := &lockedBuffer{more: make(chan struct{}, 1)}, make(chan int)
	go func() {
		code <- run(ctx, []string{"autoscaler", "status", "ml/llm", "-w"}, strings.NewReader(""), out, io.Discard)
	}()
	out.until(t, "ml/llm: managed")
	r.mu.Lock()
	r.view.Kube.Freeze = true
	r.mu.Unlock()
	r.hub.Changed(llmKey)
	out.until(t, "frozen: Heliostat writes nothing")
	cancel()
	if got := <-code; got != cli.ExitOK {
		t.Errorf("exit %d", got)
	}
}

func TestAWatchPlansAndExplainsAnewWhatChanged(t *testing.T) {
	for name, c := range map[string]struct {
		argv   []string
		before string
	}{
		"explain": {[]string{"--group", "gpu", "-w"}, "group gpu: launch: launching 1 pod"},
		"plan":    {[]string{"-o", "table", "-w"}, "launch 1 × gpu"},
	} {
		r := newRemote(t)
		watched(t, r, append([]string{name, "ml/llm"}, c.argv...), c.before, func() string {
			r.view.Snapshot.Requests = nil
			return "no waiting demand needs another pod"
		})
		code, _, errOut := command(t, "{}", append([]string{"autoscaler", name, "--snapshot", "-"}, c.argv...)...)
		if code != cli.ExitBadInput || !strings.Contains(errOut, "want a RayCluster with it") {
			t.Errorf("%s of a file: exit %d %s", name, code, errOut)
		}
	}
}

// watched runs a command with -w that writes to a buffer. It makes the changes one after the other, each after the
// command has reported the previous one. It returns the output.
func watched(t *testing.T, r *remote, argv []string, first string, changes ...func() (want string)) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, ended := &lockedBuffer{more: make(chan struct{}, 1)}, make(chan int)
	go func() {
		ended <- run(ctx, append([]string{"autoscaler"}, argv...), strings.NewReader(""), out, io.Discard)
	}()
	out.until(t, first)
	for _, change := range changes {
		r.mu.Lock()
		want := change()
		r.mu.Unlock()
		r.hub.Changed(llmKey)
		out.until(t, want)
	}
	cancel()
	if code := <-ended; code != cli.ExitOK {
		t.Errorf("%v: exit %d", argv, code)
	}
	return out.text.String()
}

func TestAWatchIntoAFileTellsEachChangeOnce(t *testing.T) {
	freeze := func(r *remote, frozen bool, want string) func() string {
		return func() string {
			r.view.Kube.Freeze, r.view.At, r.view.Took = frozen, r.view.At.Add(time.Second), r.view.Took+time.Millisecond
			return want
		}
	}
	for _, c := range []struct {
		argv                []string
		first, frozen, once string
		check               func(out string) bool
	}{
		{[]string{"status", "-w"}, "  managed ", "  frozen ", "NAMESPACE  NAME", func(out string) bool {
			lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
			return len(lines) == 3 && strings.HasPrefix(lines[1], "ml         llm   managed ") && strings.HasPrefix(lines[2], "ml         llm   frozen  ")
		}},
		{[]string{"status", "ml/llm", "-w"}, "ml/llm: managed", "ml/llm: frozen", "ml/llm: managed", func(out string) bool {
			return strings.Contains(out, "\n\nml/llm: frozen") && strings.Count(out, "ml/llm: ") == 2
		}},
		{[]string{"status", "ml/llm", "-w", "-o", "json"}, `"frozen": false`, `"frozen": true`, `"frozen": false`, func(out string) bool {
			documents := json.NewDecoder(strings.NewReader(out))
			for range 2 {
				if documents.Decode(new(apiv1.Cluster)) != nil {
					return false
				}
			}
			return !documents.More()
		}},
		{[]string{"status", "ml/llm", "-w", "-o", "yaml"}, "\nfrozen: false", "\nfrozen: true", "\nfrozen: false", func(out string) bool {
			return strings.Count(out, "\n---\n") == 1
		}},
	} {
		r := newRemote(t)
		out := watched(t, r, c.argv, c.first, freeze(r, false, c.first), freeze(r, true, c.frozen))
		if strings.Contains(out, "\x1b") || strings.Count(out, c.once) != 1 || !c.check(out) {
			t.Errorf("%v: got\n%s", c.argv, out)
		}
	}
}

func TestATableThatGoesOnTellsWhatChangedAndWhatIsGone(t *testing.T) {
	as := printer.Look{}.Continued()
	tell := func(items ...apiv1.ClusterSummary) string {
		var out strings.Builder
		if err := printer.WriterOf("table", as, func(p *printer.Page, list apiv1.ClusterList) { printer.WriteFleet(p, "", list) })(&out, apiv1.ClusterList{Items: items}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	young, old := 0.1, 300.0
	one := apiv1.ClusterSummary{Namespace: "ml", Name: "a-long-name", Mode: nodepool.Managed, DataAgeSeconds: &young, LastCycle: new(time.Time)}
	two := apiv1.ClusterSummary{Namespace: "ml", Name: "b", Mode: nodepool.Managed, DataAgeSeconds: &young, LastCycle: new(time.Time)}
	older, grown := one, two
	older.DataAgeSeconds, grown.Workers.Desired = &old, 3
	for i, step := range []struct {
		now  []apiv1.ClusterSummary
		want string
	}{
		{nil, "No RayClusters found.\n"},
		{[]apiv1.ClusterSummary{one, two}, `NAMESPACE  NAME         MODE     WORKERS  WAITING  UNMET  FINDINGS   DATA  STATUS
ml         a-long-name  managed      0/0        0      0         0  100ms  OK
ml         b            managed      0/0        0      0         0  100ms  OK
`},
		{[]apiv1.ClusterSummary{older, two}, ""},
		{[]apiv1.ClusterSummary{older, grown}, "ml         b            managed      0/3        0      0         0  100ms  OK\n"},
		{[]apiv1.ClusterSummary{grown}, "ml         a-long-name  gone\n"},
		{nil, "ml         b            gone\n"},
		{[]apiv1.ClusterSummary{two}, "ml         b            managed      0/0        0      0         0  100ms  OK\n"},
	} {
		if got := tell(step.now...); got != step.want {
			t.Errorf("step %d: told\n%s, want\n%s", i, got, step.want)
		}
	}
}

func TestAWatchOfAClusterThatIsNotThereFails(t *testing.T) {
	newRemote(t)
	if code, _, errOut := command(t, "", "autoscaler", "status", "ml/other", "-w"); code != cli.ExitFailed || !strings.Contains(errOut, "no RayCluster ml/other") {
		t.Errorf("exit %d %s", code, errOut)
	}
}
