package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

// narrator prints the story in columns: time since the start, time since the previous stage, what, where, how. It uses
// colours only on terminals, unless NO_COLOR is set.
type narrator struct {
	out    io.Writer
	colour bool

	mu       sync.Mutex // guards all below: facts come from several observers
	begin    time.Time
	previous time.Time  // when the last preparation was ready
	number   int        // of the last chapter
	held     []rig.Fact // what followed from a request or a demand that is not printed yet
	awaited  int        // requests of this chapter that are not reported yet
	clock    *clock
	took     map[rig.Stage][]time.Duration
}

func newNarrator(out *os.File) *narrator {
	info, err := out.Stat()
	colour := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" &&
		os.Getenv("TERM") != "dumb"
	now := time.Now()
	return &narrator{
		out:      out,
		colour:   colour,
		begin:    now,
		previous: now,
		clock:    newClock(),
		took:     map[rig.Stage][]time.Duration{},
	}
}

// The three weights of the story: what happens, what carries it, what to look at.
const (
	plain = ""
	faint = "\x1b[2m"
	bold  = "\x1b[1m"
	good  = "\x1b[32m"
	bad   = "\x1b[31m"
)

// paint gives text a weight, padded to width before the escape codes make its length useless.
func (n *narrator) paint(weight, text string, width int) string {
	padded := text + strings.Repeat(" ", max(0, width-len([]rune(text))))
	if !n.colour || weight == plain {
		return padded
	}
	return weight + padded + "\x1b[0m"
}

func (n *narrator) line(parts ...string) {
	fmt.Fprintln(n.out, strings.TrimRight("  "+strings.Join(parts, "  "), " "))
}

func (n *narrator) title() {
	fmt.Fprintln(n.out)
	n.line(n.paint(bold, "Heliostat", 0) + " watches what Ray's work needs, and scales the worker groups of " +
		"a RayCluster.")
	fmt.Fprintln(n.out)
}

// ready prints that a preparation is done, and how long it took.
func (n *narrator) ready(what, detail string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	n.line(n.paint(good, what, 12), n.paint(plain, fmt.Sprintf("ready in %.1f s", now.Sub(n.previous).Seconds()), 16),
		n.paint(faint, detail, 0))
	n.previous = now
}

// chapter begins a chapter.
func (n *narrator) chapter(c chapter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.number++
	n.awaited = c.requests()
	if n.number == 1 {
		n.begin = time.Now()
		fmt.Fprintln(n.out)
		n.line(n.paint(faint, fmt.Sprintf("%9s  %9s  %-15s  %-18s  %s", "time", "step", "what", "worker", ""), 0))
	}
	fmt.Fprintln(n.out)
	n.line(n.paint(bold, fmt.Sprintf("%d  %s", n.number, c.title), 0))
	n.line("   " + n.paint(faint, c.code, 0))
	if c.note != "" {
		n.line("   " + n.paint(faint, c.note, 0))
	}
}

// event writes one line of the story.
func (n *narrator) event(at time.Time, step, weight, what, worker, detail string) {
	n.line(n.paint(faint, fmt.Sprintf("%8.2fs", at.Sub(n.begin).Seconds()), 0), fmt.Sprintf("%9s", step),
		n.paint(weight, what, 15), n.paint(plain, worker, 18), n.paint(faint, detail, 0))
}

// requested is the stage of a request in the story. No journal has it.
const requested rig.Stage = "asked"

// asked prints that the driver or a REST client has asked for capacity. The last request of a chapter also prints what
// arrived meanwhile.
func (n *narrator) asked(at time.Time, what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = append(n.held, rig.Fact{At: at, Stage: requested, Detail: what})
	if n.awaited = max(0, n.awaited-1); n.awaited > 0 {
		return
	}
	events := n.held
	n.held = nil
	slices.SortStableFunc(events, func(a, b rig.Fact) int { return a.At.Compare(b.At) })
	for _, f := range events {
		n.take(f)
	}
}

// released prints that nothing is asked for any more.
func (n *narrator) released(at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clock.released = at
	n.event(at, "", bold, "released", "", "nothing is asked for any more; workers are removed after 10 s idle")
}

// fact prints what the journal has recorded, in the order in which it happened. The driver reports a request after it
// has made it, and Ray's answer may show the demand before the report arrives: facts wait for the requests of their
// chapter.
func (n *narrator) fact(f rig.Fact) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.awaited > 0 {
		n.held = append(n.held, f)
		return
	}
	n.take(f)
}

// take prints a fact, or holds it back. The observer reads Ray every 50 ms, and Heliostat may have read a demand before
// it: a patch waits for the demand that it serves, which was there when the patch was made.
func (n *narrator) take(f rig.Fact) {
	switch {
	case f.Stage == rig.DemandSeen && len(n.held) > 0:
		f.At = earlier(f.At, n.held[0].At)
	case len(n.held) > 0 || n.clock.ahead(f):
		n.held = append(n.held, f)
		return
	}
	n.print(f)
	n.release()
}

// release prints what was held back.
func (n *narrator) release() {
	for _, f := range n.held {
		n.print(f)
	}
	n.held = nil
}

// print writes a fact as the next line.
func (n *narrator) print(f rig.Fact) {
	if f.Stage == requested {
		n.clock.asked = f.At
		n.event(f.At, "", bold, string(requested), "", f.Detail)
		return
	}
	since, part := n.clock.since(f)
	if !part {
		return
	}
	n.took[f.Stage] = append(n.took[f.Stage], since)
	worker, detail := strings.TrimPrefix(f.Pod, name+"-"), f.Detail
	switch f.Stage {
	case rig.GroupPatched:
		worker = f.Group
	case rig.WorkRan:
		detail = "runs " + f.Detail
	}
	weight := plain
	if f.Stage == rig.WorkRan || f.Stage == rig.PodGone {
		weight = good
	}
	n.event(f.At, fmt.Sprintf("+%.2fs", since.Seconds()), weight, string(f.Stage), worker, detail)
}

// table ends the story with how long each stage took.
func (n *narrator) table() {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintln(n.out)
	n.line(n.paint(bold, "How long each stage took after the previous one", 0))
	fmt.Fprintln(n.out)
	n.line(n.paint(faint, fmt.Sprintf("%-15s  %5s  %8s  %8s", "stage", "times", "p50", "max"), 0))
	for _, r := range stages(n.took) {
		n.line(fmt.Sprintf("%-15s  %5d  %7.2fs  %7.2fs", r.stage, r.count, r.p50.Seconds(), r.max.Seconds()))
	}
	fmt.Fprintln(n.out)
	n.line(
		n.paint(faint, "demand seen: Ray reports a waiting task after about 0.6 s, a placement group at once.", 0))
	n.line(n.paint(faint, "idle → drained: includes the idle timeout of 10 s. Every step above was checked.", 0))
}

// further prints commands for a closer look. They run as printed, in the root of the repository, while this program
// runs.
func (n *narrator) further(kubeconfig, url, program string, ends bool) {
	fmt.Fprintln(n.out)
	if ends {
		more := ": `make demo` without DEMO_EXIT keeps all this running until Ctrl-C, and prints commands to try."
		n.line(n.paint(bold, "Look further", 0) + more)
		return
	}
	n.line(n.paint(bold, "Look further while this runs", 0) + ": the page is " + url + "/, and in another terminal")
	fmt.Fprintln(n.out)
	cluster := namespace + "/" + name
	for _, hint := range [][2]string{
		{`export PATH="` + filepath.Dir(program) + `:$PATH" HELIOSTAT_SERVER=` + url, ""},
		{"autoscaler status " + cluster, "groups, demand, reasons"},
		{"autoscaler explain " + cluster + " --group gpu", "why it has its size"},
		{"autoscaler request " + cluster + ` --bundle '{"GPU": 1}'`, "requests a worker"},
		{"autoscaler request " + cluster + " --delete", "removes that request"},
		{"autoscaler request " + cluster + ` --id mine --bundle '{"CPU": 2}' --lease 1m`,
			"requests in your own name, for a minute"},
		{"autoscaler request " + cluster, "who requests how much"},
		{"curl -s " + url + "/metrics", ""},
		{"export KUBECONFIG=" + kubeconfig, ""},
		{"(cd test/devcluster && go run ./cmd/devcluster kubectl --name " + clusterName() +
			" get pods -n " + namespace + ")", ""},
	} {
		command := hint[0]
		if hint[1] != "" {
			command = fmt.Sprintf("%-58s # %s", command, hint[1])
		}
		n.line("  " + n.paint(faint, command, 0))
	}
}

// waiting prints that the story is over and the cluster stays.
func (n *narrator) waiting() {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintln(n.out)
	n.clock.live = true
	n.line("What happens from now on appears here too. Press " + n.paint(bold, "Ctrl-C", 0) + " to stop everything.")
	fmt.Fprintln(n.out)
}

// cleaning prints that stopping may take a few seconds.
func (n *narrator) cleaning() {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintln(n.out)
	n.line(n.paint(faint, "stopping every process and removing the cluster's directory", 0))
}

// failed prints what did not happen, with the end of Heliostat's log.
func (n *narrator) failed(err error, log string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.release()
	fmt.Fprintln(n.out)
	n.line(n.paint(bad, "A step did not happen as expected", 0))
	for line := range strings.Lines(err.Error()) {
		n.line(strings.TrimRight(line, "\n"))
	}
	if log != "" {
		n.line(n.paint(faint, "The end of Heliostat's log:", 0))
		for line := range strings.Lines(log) {
			n.line(n.paint(faint, strings.TrimRight(line, "\n"), 0))
		}
	}
}
