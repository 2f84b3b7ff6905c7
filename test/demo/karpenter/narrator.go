package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

// narrator prints the story in columns: time since the first chapter, what, where, how.
type narrator struct {
	out io.Writer

	mu     sync.Mutex // guards all below: facts come from several observers
	begin  time.Time
	number int
}

func newNarrator(out io.Writer) *narrator { return &narrator{out: out} }

// chapter begins a chapter.
func (n *narrator) chapter(title string, notes ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.number++
	if n.begin.IsZero() {
		n.begin = time.Now()
	}
	fmt.Fprintf(n.out, "\n  %d  %s\n", n.number, title)
	for _, note := range notes {
		fmt.Fprintf(n.out, "     %s\n", note)
	}
}

// say prints what the demo did.
func (n *narrator) say(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.line(time.Now(), "", "", what)
}

// fact prints what the journal has recorded since the first chapter began.
func (n *narrator) fact(f rig.Fact) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.begin.IsZero() || f.Stage == rig.DemandGone {
		return
	}
	where := f.Machine
	switch {
	case f.Pod != "":
		where = short(f.Pod)
	case f.Stage == rig.GroupPatched:
		where = f.Group
	}
	n.line(f.At, string(f.Stage), where, f.Detail)
}

// short is the name of a pod without that of the RayCluster.
func short(pod string) string { return strings.TrimPrefix(pod, name+"-") }

func (n *narrator) line(at time.Time, what, where, detail string) {
	line := fmt.Sprintf("  %8.2fs  %-16s  %-20s  %s", at.Sub(n.begin).Seconds(), what, where, detail)
	fmt.Fprintln(n.out, strings.TrimRight(line, " "))
}

// end prints how the story ended.
func (n *narrator) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintf(n.out, "\n  Every step happened: no task was lost, none ran twice.\n")
}

// stays prints how to look further while the cluster runs.
func (n *narrator) stays(kubeconfig, url string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintf(
		n.out,
		"  While this runs, the page is %s/ and KUBECONFIG=%s has the cluster. Ctrl-C stops everything.\n",
		url,
		kubeconfig,
	)
}
