// Package schedule draws schedules of faults from seeds, and finds the shortest schedule that still fails. It knows
// only the names of faults. The program plays them.
package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the name of a fault.
type Kind string

// The faults of heads. A lie lasts as long as the fault.
const (
	HeadHangs     Kind = "head-hangs"
	HeadSlow      Kind = "head-slow"
	HeadFails     Kind = "head-fails"
	HeadGarbage   Kind = "head-garbage"
	HeadToken     Kind = "head-rejects-token"
	HeadOld       Kind = "head-lies-old"
	HeadPartial   Kind = "head-lies-partial"
	HeadDuplicate Kind = "head-lies-duplicate"
	HeadNegative  Kind = "head-lies-negative"
	HeadEnormous  Kind = "head-lies-enormous"
	HeadRestart   Kind = "head-new-session"
	HeadGCS       Kind = "head-gcs-restart"
)

// The faults of what all RayClusters share.
const (
	APISlow     Kind = "api-slow"
	API429      Kind = "api-429"
	API409      Kind = "api-409"
	API500      Kind = "api-500"
	APICut      Kind = "api-cuts-watches"
	APIExpired  Kind = "api-expires-watches"
	APICompact  Kind = "api-compacts"
	APIRestart  Kind = "api-restarts"
	APIOlder    Kind = "api-older-storage"
	Operator    Kind = "operator-stops"
	MachineGone Kind = "machine-disappears"
	OurKill     Kind = "heliostat-killed"
	OurPause    Kind = "heliostat-paused"
)

// The faults of what people write into a RayCluster.
const (
	Nonsense Kind = "annotations-nonsense"
	Maximum  Kind = "spec-maximum"
	Minimum  Kind = "spec-minimum"
)

// scope is what a fault concerns.
type scope struct {
	kind Kind
	// one is whether it concerns one RayCluster. weight is how often it is drawn.
	one    bool
	weight int
}

var scopes = []scope{
	{HeadHangs, true, 3}, {HeadSlow, true, 2}, {HeadFails, true, 2}, {HeadGarbage, true, 2}, {HeadToken, true, 2},
	{HeadOld, true, 3}, {HeadPartial, true, 3}, {HeadDuplicate, true, 3}, {HeadNegative, true, 3},
	{HeadEnormous, true, 3}, {HeadRestart, true, 3}, {HeadGCS, true, 3},
	{APISlow, false, 2}, {API429, false, 2}, {API409, false, 2}, {API500, false, 2}, {APICut, false, 2},
	{APIExpired, false, 2}, {APICompact, false, 1}, {APIRestart, false, 1}, {APIOlder, false, 1}, {Operator, false, 2},
	{MachineGone, false, 2}, {OurKill, false, 2}, {OurPause, false, 1},
	{Nonsense, true, 3}, {Maximum, true, 3}, {Minimum, true, 3},
}

// Kinds returns all kinds, in the order in which they are listed here.
func Kinds() []Kind {
	kinds := make([]Kind, len(scopes))
	for i, s := range scopes {
		kinds[i] = s.kind
	}
	return kinds
}

// Fault begins At after the begin of a storm and lasts For. Cluster is the number of its RayCluster, or -1. Draw is a
// random number that the fault may use.
type Fault struct {
	At, For time.Duration
	Kind    Kind
	Cluster int
	Draw    uint32
}

// String is one line, which Parse reads.
func (f Fault) String() string {
	cluster := "all"
	if f.Cluster >= 0 {
		cluster = strconv.Itoa(f.Cluster)
	}
	return fmt.Sprintf("%s %s %s %s %d", f.At, f.For, f.Kind, cluster, f.Draw)
}

// Draw returns the faults of a round, in order of time: count faults that end within length.
func Draw(seed uint64, round, count, clusters int, length time.Duration) []Fault {
	random := rand.New(rand.NewPCG(seed, uint64(round)))
	var deck []scope
	for _, s := range scopes {
		for range s.weight {
			deck = append(deck, s)
		}
	}
	faults := make([]Fault, count)
	for i := range faults {
		faults[i] = place(random, deck[random.IntN(len(deck))], clusters, length)
	}
	sort(faults)
	return faults
}

// OneOfEach returns one fault of each kind, in order of time, as Draw does.
func OneOfEach(seed uint64, clusters int, length time.Duration) []Fault {
	random := rand.New(rand.NewPCG(seed, 0))
	faults := make([]Fault, len(scopes))
	for i, s := range scopes {
		faults[i] = place(random, s, clusters, length)
	}
	sort(faults)
	return faults
}

// place draws when a fault happens and to what.
func place(random *rand.Rand, s scope, clusters int, length time.Duration) Fault {
	last := time.Second + upTo(random, length/3)
	f := Fault{At: upTo(random, length-last), For: last, Kind: s.kind, Cluster: -1, Draw: random.Uint32()}
	f.At, f.For = f.At.Round(time.Millisecond), f.For.Round(time.Millisecond)
	if s.one {
		f.Cluster = random.IntN(clusters)
	}
	return f
}

func sort(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int { return int(a.At - b.At) })
}

func upTo(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}

// Parse reads lines of Fault.String. It ignores empty lines and the space around a line.
func Parse(text string) ([]Fault, error) {
	faults := []Fault{} // not nil: an empty schedule has no faults
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		f, err := parse(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("reading the fault %q: %w", line, err)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func parse(words []string) (f Fault, err error) {
	if len(words) != 5 {
		return f, fmt.Errorf("it has %d words, want 5: begin, duration, kind, RayCluster, number", len(words))
	}
	if f.At, err = time.ParseDuration(words[0]); err != nil {
		return f, err
	}
	if f.For, err = time.ParseDuration(words[1]); err != nil {
		return f, err
	}
	if f.Kind = Kind(words[2]); !slices.Contains(Kinds(), f.Kind) {
		return f, fmt.Errorf("%q is no kind of fault, want one of %q", f.Kind, Kinds())
	}
	f.Cluster = -1
	if words[3] != "all" {
		if f.Cluster, err = strconv.Atoi(words[3]); err != nil {
			return f, err
		}
	}
	draw, err := strconv.ParseUint(words[4], 10, 32)
	f.Draw = uint32(draw)
	return f, err
}
