package httpapi

import (
	"strconv"
	"strings"
	"sync"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// listener is one reader of a stream.
type listener struct {
	hears func(nodepool.ClusterKey) bool
	// wake has a token while something waits.
	wake chan struct{}

	mu sync.Mutex // guards what follows
	// waiting are frames in the order in which they came; one without text has been overtaken. newest is where the newest about each thing stands.
	waiting []frame
	newest  map[about]int
	bytes   int
	// ended says why nothing more comes; empty while more may.
	ended string
}

func newListener(hears func(nodepool.ClusterKey) bool) *listener {
	return &listener{hears: hears, wake: make(chan struct{}, 1), newest: map[about]int{}}
}

// put lets frames wait. A newer event about a cluster takes the place of an older one of its kind, in the same time however many wait.
func (l *listener) put(frames ...frame) {
	l.mu.Lock()
	for _, f := range frames {
		if at, waits := l.newest[f.about]; waits {
			l.bytes -= len(l.waiting[at].text)
			l.waiting[at].text = nil
		}
		l.append(f)
	}
	if len(l.waiting) > 2*len(l.newest) {
		l.forgetOvertaken()
	}
	if l.bytes > maxPending && l.ended == "" {
		l.ended = "too slow: more than " + strconv.Itoa(maxPending>>20) + " MiB wait"
	}
	if l.ended != "" {
		l.reset()
	}
	l.mu.Unlock()
	l.rouse()
}

func (l *listener) append(f frame) {
	l.newest[f.about] = len(l.waiting)
	l.waiting = append(l.waiting, f)
	l.bytes += len(f.text)
}

func (l *listener) forgetOvertaken() {
	waiting := l.waiting
	l.reset()
	for _, f := range waiting {
		if f.text != nil {
			l.append(f)
		}
	}
}

func (l *listener) reset() {
	l.waiting, l.bytes = nil, 0
	clear(l.newest)
}

// end lets nothing more come; the first reason stays.
func (l *listener) end(why string) {
	l.mu.Lock()
	if l.ended == "" {
		l.ended = strings.TrimSpace(why)
	}
	l.mu.Unlock()
	l.rouse()
}

func (l *listener) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns what waits, and why nothing more comes.
func (l *listener) take() (frames []frame, ended string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetOvertaken()
	frames = l.waiting
	l.reset()
	return frames, l.ended
}
