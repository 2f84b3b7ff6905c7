package terms

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rule is what must hold.
type Rule string

// The rules. Interleaved is the one that matters; the others keep it from being avoided.
const (
	// Interleaved: a term writes again after another term has written.
	Interleaved Rule = "the terms of the writers interleave"
	// Backwards: a shard writes in a term that is older than one in which it has written.
	Backwards Rule = "a shard writes in an older term"
	// TwoWriters: a process writes in the term of another.
	TwoWriters Rule = "a term has two writers"
	// Unnamed: a patch writes no term.
	Unnamed Rule = "a patch has no term"
	// Reused: a term writes to two RayClusters. A term belongs to one.
	Reused Rule = "a term writes to two RayClusters"
)

// Rules are all rules.
var Rules = []Rule{Interleaved, Backwards, TwoWriters, Unnamed, Reused}

// Violation is a rule that was broken.
type Violation struct {
	At      time.Time
	Rule    Rule
	Cluster string
	Detail  string
}

// String is one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s: %s", v.At.UTC().Format("15:04:05.000"), v.Rule, v.Cluster, v.Detail)
}

// Verdict is what a judge found.
type Verdict struct {
	// Writes are the patches that were stored, Terms the different terms, and HandOvers how often another shard wrote
	// than the one before. Clusters are the RayClusters that were written.
	Writes, Terms, HandOvers, Clusters int
	// Unlinked is how many patches test another term than that of the write before. Such a patch is stored only if a
	// write between them has no answer in the log: the API server was killed, or its client had gone. The term that is
	// tested is judged in its place.
	Unlinked int
	// Unfenced is how many patches do not test the annotation.
	Unfenced int
	// Shards counts the writes of each shard.
	Shards     map[string]int
	Violations []Violation
}

// Judge judges writes. Their order does not matter.
func Judge(writes []Write) *Verdict {
	v := &Verdict{Shards: map[string]int{}}
	byCluster := map[string][]Write{}
	for _, w := range writes {
		byCluster[w.Cluster] = append(byCluster[w.Cluster], w)
	}
	v.Clusters = len(byCluster)
	clusterOf := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(byCluster)) {
		v.cluster(stored(byCluster[name]))
	}
	for _, w := range writes {
		v.owner(w, clusterOf)
	}
	v.Terms = len(clusterOf)
	slices.SortStableFunc(v.Violations, func(a, b Violation) int { return a.At.Compare(b.At) })
	return v
}

// stored returns the writes in the order of their revisions. A patch that changes nothing stores nothing: it is
// answered with the revision of the write before.
func stored(writes []Write) []Write {
	slices.SortStableFunc(writes, func(a, b Write) int { return cmp.Compare(a.Revision, b.Revision) })
	return slices.CompactFunc(writes, func(a, b Write) bool { return a.Revision == b.Revision && a.Term == b.Term })
}

// cluster judges the writes of one RayCluster in their order.
func (v *Verdict) cluster(writes []Write) {
	over := map[string]bool{}       // terms after which another has written
	newest := map[string]numbered{} // by shard
	var before Write
	for i, w := range v.linked(writes) {
		if !w.Fenced && !w.inferred {
			v.Unfenced++
		}
		if w.Term == "" {
			v.fail(w, Unnamed, "revision %d, of user agent with shard %q", w.Revision, w.Shard)
			continue
		}
		if i > 0 && before.Term != w.Term {
			over[before.Term] = true
			if numberOf(before.Term).shard != numberOf(w.Term).shard {
				v.HandOvers++
			}
		}
		if over[w.Term] {
			v.fail(w, Interleaved, "term %s writes revision %d, but %s has written since", w.Term, w.Revision,
				before.Term)
		}
		before = w
		term := numberOf(w.Term)
		if last := newest[term.shard]; term.number < last.number {
			v.fail(w, Backwards, "term %s writes revision %d after term %s.%d", w.Term, w.Revision, last.shard,
				last.number)
		}
		newest[term.shard] = term
	}
}

// linked returns the writes with those between them that have no answer in the log.
func (v *Verdict) linked(writes []Write) (all []Write) {
	for i, w := range writes {
		v.Writes++
		if i > 0 && w.Fenced && w.Tested != writes[i-1].Term && w.Tested != "" {
			v.Unlinked++
			all = append(all, Write{Cluster: w.Cluster, Revision: w.Revision, Term: w.Tested, At: w.At, inferred: true})
		}
		all = append(all, w)
	}
	return all
}

// owner judges that the writer of a term is its shard, and that it writes to one RayCluster.
func (v *Verdict) owner(w Write, clusterOf map[string]string) {
	if w.Term == "" {
		return
	}
	holder := numberOf(w.Term).shard
	v.Shards[holder]++
	if w.Shard != holder {
		v.fail(w, TwoWriters, "term %s is written by the process of shard %q", w.Term, w.Shard)
	}
	if of, known := clusterOf[w.Term]; known && of != w.Cluster {
		v.fail(w, Reused, "term %s has written to %s too", w.Term, of)
	}
	clusterOf[w.Term] = w.Cluster
}

// fail notes a violation.
func (v *Verdict) fail(w Write, rule Rule, format string, values ...any) {
	v.Violations = append(v.Violations, Violation{w.At, rule, w.Cluster, fmt.Sprintf(format, values...)})
}

// Vacuous returns an error if too little was written for the verdict to prove something: each of the shards must have
// written, and RayClusters must have been handed over.
func (v *Verdict) Vacuous(shards []string) error {
	var err error
	if v.Writes == 0 || v.HandOvers == 0 {
		err = fmt.Errorf("%d writes and %d hand-overs prove nothing", v.Writes, v.HandOvers)
	}
	if len(shards) == 0 {
		err = errors.Join(err, errors.New("no shard is named that must write"))
	}
	for _, shard := range shards {
		if v.Shards[shard] == 0 {
			err = errors.Join(err, fmt.Errorf("shard %s has written nothing", shard))
		}
	}
	return err
}

// numbered is a term: the shard, and a number that grows in it.
type numbered struct {
	shard  string
	number int
}

// numberOf reads a term. The number of one that has none is 0.
func numberOf(term string) numbered {
	at := strings.LastIndexByte(term, '.')
	if at < 0 {
		return numbered{shard: term}
	}
	n, _ := strconv.Atoi(term[at+1:])
	return numbered{term[:at], n}
}
