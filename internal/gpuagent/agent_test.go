package gpuagent

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// board stores the data that an agent publishes.
type board struct {
	values []string
	err    error
}

func (b *board) publish(_ context.Context, value string) (bool, error) {
	if b.err != nil {
		return false, b.err
	}
	b.values = append(b.values, value)
	return true, nil
}

func agentOn(driver Driver) (*Agent, *board) {
	b := &board{}
	return &Agent{driver: driver, publish: b.publish, log: slog.New(slog.DiscardHandler)}, b
}

var noon = time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)

func step(t *testing.T, a *Agent, after time.Duration) {
	t.Helper()
	if err := a.Step(t.Context(), noon.Add(after)); err != nil {
		t.Fatal(err)
	}
}

// last decodes the last report in the same way as nodepool.
func (b *board) last(t *testing.T) sharing.AgentReport {
	t.Helper()
	if len(b.values) == 0 {
		t.Fatal("nothing was published")
	}
	report, err := sharing.ParseAgentReport(b.values[len(b.values)-1])
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestAnAgentTellsWhatNodepoolReads(t *testing.T) {
	broken := a100Card(1)
	broken.Healthy, broken.Problem = false, "the card must be reset"
	a, b := agentOn(&fakeDriver{inventory: gpuinfo.Inventory{Cards: []gpuinfo.Card{
		cutA100(0, gpuinfo.Instance{Profile: "1g.5gb+me", Start: 4}, gpuinfo.Instance{Profile: "3g.20gb", Start: 0}), broken,
	}}})
	step(t, a, 0)
	want := sharing.AgentReport{At: noon, Cards: []gpuinfo.Card{
		cutA100(0, gpuinfo.Instance{Profile: "1g.5gb+me", Start: 4}, gpuinfo.Instance{Profile: "3g.20gb", Start: 0}), broken,
	}}
	if diff := cmp.Diff(want, b.last(t)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestAnAgentWritesOnChangeAndEachQuarterOfAnHour(t *testing.T) {
	driver := &fakeDriver{inventory: gpuinfo.Inventory{Cards: []gpuinfo.Card{a100Card(0)}}}
	a, b := agentOn(driver)
	free := func(n gpuinfo.MiB) { driver.inventory.Cards[0].Free = &n }
	for _, moment := range []struct {
		after  time.Duration
		change func()
		writes int
		why    string
	}{
		{0, func() {}, 1, "the first reading"},
		{30 * time.Second, func() {}, 1, "nothing changed"},
		{time.Minute, func() { free(40442 - 2047) }, 1, "less than a twentieth of the memory moved"},
		{2 * time.Minute, func() { free(40442 - 2048) }, 2, "a twentieth moved"},
		{3 * time.Minute, func() { driver.inventory.Cards[0].Healthy = false }, 3, "the card is not healthy any more"},
		{4 * time.Minute, func() { driver.inventory.Cards[0] = cutA100(0) }, 4, "MIG was enabled"},
		{5 * time.Minute, func() { driver.inventory.Cards[0] = cutA100(0, gpuinfo.Instance{Profile: "1g.5gb", Start: 3}) }, 5, "an instance was made"},
		{6 * time.Minute, func() { driver.inventory.Cards[0] = cutA100(0, gpuinfo.Instance{Profile: "1g.5gb", Start: 2}) }, 6, "it moved"},
		{19 * time.Minute, func() {}, 6, "a quarter after the first is not a quarter after the last"},
		{21 * time.Minute, func() {}, 7, "a quarter of an hour passed: an older report counts as nobody's"},
	} {
		moment.change()
		step(t, a, moment.after)
		if len(b.values) != moment.writes {
			t.Fatalf("after %s, %s: %d writes, want %d", moment.after, moment.why, len(b.values), moment.writes)
		}
	}
}

func TestAnAgentRemembersWhoALostCardWas(t *testing.T) {
	driver := &fakeDriver{inventory: gpuinfo.Inventory{Cards: []gpuinfo.Card{a100Card(0)}}}
	a, b := agentOn(driver)
	step(t, a, 0)
	driver.inventory.Cards = []gpuinfo.Card{{Index: 0, Problem: "lost"}, {Index: 1, Problem: "lost"}}
	step(t, a, time.Minute)
	want := sharing.AgentReport{At: noon.Add(time.Minute), Cards: []gpuinfo.Card{
		{Index: 0, UUID: "GPU-a", Product: "NVIDIA A100-SXM4-40GB", Memory: a100Card(0).Memory, Cut: a100Card(0).Cut, Problem: "lost"},
		{Index: 1, Problem: "lost"},
	}}
	if diff := cmp.Diff(want, b.last(t)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// TestAnAgentPublishesNothingWhenALayoutIsNotTold checks a partitioned card without a list of instances. A published
// report would mean that the card offers nothing.
func TestAnAgentPublishesNothingWhenALayoutIsNotTold(t *testing.T) {
	hidden := cutA100(1)
	hidden.Cut.Instances = nil
	a, b := agentOn(&fakeDriver{inventory: gpuinfo.Inventory{Cards: []gpuinfo.Card{a100Card(0), hidden}}})
	if err := a.Step(t.Context(), noon); err == nil || !strings.Contains(err.Error(), "instances of card 1") || len(b.values) > 0 {
		t.Errorf("error %v, published %v", err, b.values)
	}
}

func TestAnAgentTriesAgainWhatTheAPIServerDidNotTake(t *testing.T) {
	a, b := agentOn(&fakeDriver{inventory: gpuinfo.Inventory{Cards: []gpuinfo.Card{a100Card(0)}}})
	b.err = errors.New("it changed since it was read")
	var unpublished publishError
	if err := a.Step(t.Context(), noon); !errors.As(err, &unpublished) || !errors.Is(err, b.err) {
		t.Fatalf("got %v", err)
	}
	b.err = nil
	step(t, a, time.Second)
	if len(b.values) != 1 {
		t.Errorf("%d writes, want 1", len(b.values))
	}
}

func TestAnAgentEndsWhenTheDriverDoesNotAnswer(t *testing.T) {
	driver := &fakeDriver{err: errors.New("driver/library version mismatch")}
	a, _ := agentOn(driver)
	if err := a.Run(t.Context(), time.Hour); !errors.Is(err, driver.err) {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	driver.err, driver.inventory = nil, gpuinfo.Inventory{Cards: []gpuinfo.Card{}}
	if err := a.Run(ended, time.Hour); err != nil {
		t.Errorf("asked to end: %v", err)
	}
}

func TestAReportNamesTheStartOfTheMachine(t *testing.T) {
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"as the kernel tells it": {fstest.MapFS{"sys/kernel/random/boot_id": {Data: []byte("8c1f0a52\n")}}, "8c1f0a52"},
		"where it does not":      {fstest.MapFS{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := agentOn(&fakeDriver{inventory: gpuinfo.Inventory{Cards: []gpuinfo.Card{a100Card(0)}}})
			a.boot = bootID(c.files)
			step(t, a, 0)
			if got := b.last(t).BootID; got != c.want {
				t.Errorf("start %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnAgentPublishesWhatIsToBeWatchedAboutAHealthyCard(t *testing.T) {
	repaired := a100Card(0)
	repaired.Rows = &gpuinfo.RemappedRows{Uncorrected: 1, Pending: true}
	a, b := agentOn(&fakeDriver{inventory: gpuinfo.Inventory{Cards: []gpuinfo.Card{repaired}}})
	step(t, a, 0)
	if card := b.last(t).Cards[0]; !card.Healthy || !strings.HasPrefix(card.Problem, "memory rows are remapped at the next reset") {
		t.Errorf("published %+v", card)
	}
}
