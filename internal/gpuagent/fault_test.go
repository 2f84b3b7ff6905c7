package gpuagent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func xid(card int, number uint64) gpuinfo.XIDEvent {
	x, _ := gpuinfo.XIDOf(number)
	return gpuinfo.XIDEvent{XID: x, Card: &card}
}

// problems returns the problems of the cards in each published report, in order.
func (b *board) problems(t *testing.T) [][]string {
	t.Helper()
	var all [][]string
	values := b.values
	for i := range values {
		b.values = values[:i+1]
		var one []string
		for _, card := range b.last(t).Cards {
			if card.Healthy != (card.Problem == "") {
				t.Errorf("card %d is healthy %v, with problem %q", card.Index, card.Healthy, card.Problem)
			}
			one = append(one, card.Problem)
		}
		all = append(all, one)
	}
	return all
}

// running runs the agent's loop until the driver has no more events. The loop would only read again after an hour.
func running(t *testing.T, driver *fakeDriver) (*board, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	driver.silence = func() error { cancel(); return nil }
	var lines bytes.Buffer
	a, b := agentOn(driver)
	a.log = slog.New(slog.NewTextHandler(&lines, nil))
	if err := a.Run(ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	return b, lines.String()
}

func TestAFatalXIDMakesItsCardUnhealthyAtOnce(t *testing.T) {
	instance := uint32(3)
	inInstance := xid(1, 95)
	inInstance.Instance = &instance
	b, _ := running(t, &fakeDriver{
		inventory: gpuinfo.Inventory{Cards: []gpuinfo.Card{a100Card(0), a100Card(1)}},
		xids:      []gpuinfo.XIDEvent{xid(0, 79), inInstance},
	})
	want := [][]string{
		{"", ""},
		{"XID 79: the card has fallen off the bus", ""},
		{"XID 79: the card has fallen off the bus", "XID 95 in GPU instance 3: uncontained memory error"},
	}
	if diff := cmp.Diff(want, b.problems(t)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestAnXIDOfAnApplicationLeavesItsCardHealthy(t *testing.T) {
	nameless := xid(0, 79)
	nameless.Card = nil
	b, lines := running(t, &fakeDriver{
		inventory: gpuinfo.Inventory{Cards: []gpuinfo.Card{a100Card(0)}},
		xids:      []gpuinfo.XIDEvent{xid(0, 13), xid(0, 31), xid(0, 31), xid(0, 777), nameless},
	})
	if diff := cmp.Diff([][]string{{""}}, b.problems(t)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if n := strings.Count(lines, "the driver reports an XID"); n != 4 {
		t.Errorf("%d XIDs in the log, want each of 4 once:\n%s", n, lines)
	}
}

func TestACardWithAFatalXIDStaysUnhealthyWhateverItAnswers(t *testing.T) {
	driver := &fakeDriver{inventory: gpuinfo.Inventory{Cards: []gpuinfo.Card{a100Card(0)}}}
	a, b := agentOn(driver)
	step(t, a, 0)
	if !a.receive(xid(0, 48)) || a.receive(xid(0, 79)) {
		t.Error("want the first fatal XID to change the card, and no later one")
	}
	step(t, a, time.Minute)
	driver.inventory.Cards[0].Healthy, driver.inventory.Cards[0].Problem = false, "the card must be reset"
	step(t, a, 2*time.Minute)
	driver.inventory.Cards[0].Healthy, driver.inventory.Cards[0].Problem = true, ""
	step(t, a, 3*time.Minute)
	want := [][]string{{""}, {"XID 48: double-bit memory error"}, {"XID 48: double-bit memory error; the card must be reset"}, {"XID 48: double-bit memory error"}}
	if diff := cmp.Diff(want, b.problems(t)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	fresh, clean := agentOn(driver)
	step(t, fresh, 4*time.Minute)
	if diff := cmp.Diff([][]string{{""}}, clean.problems(t)); diff != "" {
		t.Errorf("an agent started anew (-want +got):\n%s", diff)
	}
}

// TestADriverThatDoesNotTellOfXIDsIsNotAskedAgainBeforeTheNextReading uses a driver that always returns at once that it
// does not support XID events. Without a pause, the agent would call it thousands of times per second.
func TestADriverThatDoesNotTellOfXIDsIsNotAskedAgainBeforeTheNextReading(t *testing.T) {
	for name, c := range map[string]struct {
		deaf error
		asks int
	}{
		"events are not supported": {errors.New("NVML says Not Supported"), 0},
		"waiting fails":            {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				asked := 0
				driver := &fakeDriver{deaf: c.deaf, silence: func() error {
					if asked++; asked > c.asks {
						cancel()
					}
					return errors.New("NVML says GPU is lost")
				}}
				var lines bytes.Buffer
				a, _ := agentOn(driver)
				a.log = slog.New(slog.NewTextHandler(&lines, nil))
				a.watch()
				if due := a.wait(ctx, time.Minute); !due || asked != c.asks {
					t.Errorf("due %v, asked %d times, want %d", due, asked, c.asks)
				}
				if !strings.Contains(lines.String(), "NVML says") {
					t.Errorf("the log says nothing of it:\n%s", lines.String())
				}
			})
		})
	}
}

func TestCardsThatTellOfNoXIDsAreNamed(t *testing.T) {
	_, lines := running(t, &fakeDriver{inventory: gpuinfo.Inventory{Cards: []gpuinfo.Card{a100Card(0), a100Card(1)}}, unwatched: []int{1}})
	if !strings.Contains(lines, "cards=[1]") {
		t.Errorf("the log:\n%s", lines)
	}
}

// hourDriver tells of an XID in each second, and of cards that change from reading to reading.
type hourDriver struct {
	fakeDriver
	readings, xids int
}

func (d *hourDriver) Inventory() (gpuinfo.Inventory, error) {
	d.readings++
	var found gpuinfo.Inventory
	for i := range 8 {
		card := a100Card(i)
		free := gpuinfo.MiB(40442 - d.readings%100*400)
		card.Free = &free
		if i == 7 && d.readings%2 == 0 {
			card = gpuinfo.Card{Index: i, Problem: "the card has fallen off the bus"}
		}
		found.Cards = append(found.Cards, card)
	}
	return found, nil
}

func (d *hourDriver) NextXID(wait time.Duration) (gpuinfo.XIDEvent, bool, error) {
	time.Sleep(wait)
	d.xids++
	return xid(d.xids%8, uint64(d.xids%200)), true, nil
}

// An hour at the shortest interval, on eight cards of which one is lost and found all the time, with an XID each second.
func TestAnHourOfReadingsDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		driver := &hourDriver{}
		a, _ := agentOn(driver)
		a.publish = func(context.Context, string) (bool, error) { return true, nil }
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		run := func(span time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), span)
			defer cancel()
			if err := a.Run(ctx, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		run(10 * time.Minute)
		before, first := heap(), driver.readings
		run(time.Hour)
		grown, readings := heap()-before, driver.readings-first
		t.Logf("%d readings and %d XIDs: the heap has grown by %d bytes", readings, driver.xids, grown)
		if readings < 3500 || grown > 64<<10 {
			t.Errorf("after %d readings, the heap has grown by %d bytes", readings, grown)
		}
	})
}
