package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// fakeDriver returns a fixed inventory, or an error.
type fakeDriver struct {
	inventory gpuinfo.Inventory
	err       error
	closed    int
}

func (f *fakeDriver) Inventory() (gpuinfo.Inventory, error) { return f.inventory, f.err }
func (f *fakeDriver) Close() error                          { f.closed++; return nil }
func (f *fakeDriver) WatchXIDs() ([]int, error)             { return nil, nil }

func (f *fakeDriver) NextXID(time.Duration) (event gpuinfo.XIDEvent, happened bool, err error) {
	return event, false, nil
}

func (f *fakeDriver) open() (gpuDriver, error) { return f, nil }

func a100Card(index int) gpuinfo.Card {
	total, free := gpuinfo.MiB(40960), gpuinfo.MiB(40442)
	return gpuinfo.Card{Index: index, UUID: "GPU-" + string(rune('a'+index)), Product: "NVIDIA A100-SXM4-40GB", Memory: &total, Free: &free, Healthy: true,
		Cut: &gpuinfo.Cut{Instances: []gpuinfo.GPUInstance{}}}
}

func cutA100(index int, instances ...gpuinfo.Instance) gpuinfo.Card {
	card := a100Card(index)
	card.Cut.Enabled, card.Cut.Pending = true, true
	for i, instance := range instances {
		card.Cut.Instances = append(card.Cut.Instances, gpuinfo.GPUInstance{ID: uint32(i), Instance: instance, Compute: 1})
	}
	return card
}

// gpus runs `gpus` with a fake driver.
func gpus(t *testing.T, driver *fakeDriver, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newGPUsCommand(driver.open)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func twoCards() *fakeDriver {
	uncorrected := uint64(3)
	first := a100Card(0)
	first.Uncorrected, first.Rows = &uncorrected, &gpuinfo.RemappedRows{Corrected: 1, Uncorrected: 1, Pending: true}
	second := cutA100(1, gpuinfo.Instance{Profile: "3g.20gb", Start: 0}, gpuinfo.Instance{Profile: "1g.5gb+me", Start: 4})
	return &fakeDriver{inventory: gpuinfo.Inventory{Driver: "550.54.15", Cards: []gpuinfo.Card{first, second}}}
}

func TestGPUsShowsCardsInstancesAndProblems(t *testing.T) {
	driver := twoCards()
	out, err := gpus(t, driver)
	want := `driver 550.54.15, 2 cards

CARD  PRODUCT                MIB    FREE MIB  MIG  HEALTHY  UNCORRECTED ERRORS  REMAPPED ROWS    RETIRED PAGES  INSTANCES
0     NVIDIA A100-SXM4-40GB  40960  40442     off  yes      3                   2, more pending  -              -
1     NVIDIA A100-SXM4-40GB  40960  40442     on   yes      -                   -                -              3g.20gb@0 1g.5gb+me@4

This is one reading of the driver, so it shows no XIDs; autoscaler agent receives them.

PROBLEMS
card 0: memory rows are remapped at the next reset of the card; until then the driver keeps work off
    them
card 0: 3 memory errors since the last reset that ECC could not correct
`
	if diff := cmp.Diff(want, out); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if driver.closed != 1 {
		t.Errorf("the driver was closed %d times", driver.closed)
	}
}

// TestGPUsWritesJSONWithAllKeys checks that every key is always present, because programs read the JSON. An unknown
// value is null.
func TestGPUsWritesJSONWithAllKeys(t *testing.T) {
	out, err := gpus(t, twoCards(), "-o", "json")
	must(t, err)
	var report struct {
		Driver   string
		Cards    []map[string]any
		Findings []string
	}
	must(t, json.Unmarshal([]byte(out), &report))
	for _, key := range []string{"index", "uuid", "product", "memoryMiB", "usedMiB", "freeMiB", "mig", "uncorrectedErrors", "remappedRows", "retiredPages", "healthy", "problem"} {
		if _, set := report.Cards[0][key]; !set {
			t.Errorf("a card has no %s", key)
		}
	}
	if len(report.Findings) != 2 {
		t.Errorf("findings %q, want those of rows and errors", report.Findings)
	}
	want := map[string]any{"enabled": true, "pendingEnabled": true, "instances": []any{
		map[string]any{"id": 0.0, "profile": "3g.20gb", "start": 0.0, "size": 0.0, "computeInstances": 1.0},
		map[string]any{"id": 1.0, "profile": "1g.5gb+me", "start": 4.0, "size": 0.0, "computeInstances": 1.0},
	}}
	if diff := cmp.Diff(want, report.Cards[1]["mig"]); diff != "" {
		t.Errorf("mig (-want +got):\n%s", diff)
	}
}

func TestGPUsSaysInOneLineWhatIsMissing(t *testing.T) {
	for _, argv := range [][]string{{"autoscaler", "gpus"}, {"autoscaler", "agent", "--node", "gpu-1"}} {
		code, out, errOut := command(t, "", argv...)
		if code == cli.ExitOK && argv[1] == "gpus" {
			t.Skip("this machine has a driver")
		}
		if code != cli.ExitFailed || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, "driver") {
			t.Errorf("%v: exit %d, output %q, %q", argv, code, out, errOut)
		}
	}
}

func TestGPUsAndAgentRefuseFlagsThatDoNotGoTogether(t *testing.T) {
	for want, argv := range map[string][]string{
		`invalid argument "xml" for "-o, --output" flag: want table, wide, json or yaml`: {"gpus", "-o", "xml"},
		"--node is missing":                {"agent"},
		"--interval 1ms: want at least 1s": {"agent", "--node", "a", "--interval", "1ms"},
		`unexpected argument "now": want flags only; see autoscaler gpus --help`: {"gpus", "now"},
		`log format "xml"`: {"agent", "--node", "a", "--log-format", "xml"},
	} {
		if code, _, errOut := command(t, "", append([]string{"autoscaler"}, argv...)...); code != cli.ExitBadInput || !strings.Contains(errOut, want) {
			t.Errorf("%v: exit %d, %s, want %s", argv, code, errOut, want)
		}
	}
}

func TestADriverThatDoesNotAnswerIsClosedAndTold(t *testing.T) {
	driver := &fakeDriver{err: errors.New("counting cards: NVML says Unknown Error")}
	if _, err := gpus(t, driver); !errors.Is(err, driver.err) || driver.closed != 1 {
		t.Errorf("got %v, closed %d times", err, driver.closed)
	}
}
