package terms

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// write is a write to RayCluster "ml/c" by the shard of its term, after a write of another term.
func write(revision int64, term, tested string) Write {
	return Write{Cluster: "ml/c", Revision: revision, Term: term, Tested: tested, Fenced: true,
		Shard: numberOf(term).shard, At: time.Date(2026, 11, 24, 12, 0, int(revision), 0, time.UTC)}
}

// good is a history of three shards, of which one writes in two terms. Revisions of other objects lie between.
func good() []Write {
	return []Write{write(1, "h-a.1", ""), write(4, "h-a.1", "h-a.1"), write(5, "h-b.7", "h-a.1"),
		write(9, "h-b.8", "h-b.7"), write(12, "h-c.1", "h-b.8")}
}

func TestAGoodHistoryIsCounted(t *testing.T) {
	other := write(3, "h-a.2", "")
	other.Cluster = "ml/d"
	writes := append(good(), other, write(12, "h-c.1", "h-c.1")) // the last one changes nothing
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(writes), func(i, j int) { writes[i], writes[j] = writes[j], writes[i] })
	v := Judge(writes)
	for _, violation := range v.Violations {
		t.Error(violation)
	}
	if v.Writes != 6 || v.Terms != 5 || v.HandOvers != 2 || v.Clusters != 2 || v.Unlinked != 0 || v.Unfenced != 0 {
		t.Errorf("%+v", v)
	}
	if err := v.Vacuous([]string{"h-a", "h-b", "h-c"}); err != nil {
		t.Error(err)
	}
}

// TestEachRuleCanBeBroken has a history for each rule: the good one, with one write more.
func TestEachRuleCanBeBroken(t *testing.T) {
	broken := map[Rule]bool{}
	for _, c := range []struct {
		name  string
		rule  Rule
		other []Rule
		write Write
	}{
		{"a patch that arrives late", Interleaved, nil, write(10, "h-a.1", "h-a.1")},
		{"a shard that goes back", Interleaved, []Rule{Backwards}, write(10, "h-b.7", "h-b.7")},
		{"an older term that has not written", Backwards, nil, write(13, "h-b.6", "h-c.1")},
		{"another process writes in the term", TwoWriters, nil, with(write(13, "h-c.1", "h-c.1"), func(w *Write) { w.Shard = "h-b" })},
		{"a process without a name", TwoWriters, nil, with(write(13, "h-c.1", "h-c.1"), func(w *Write) { w.Shard = "" })},
		{"a patch without a term", Unnamed, nil, with(write(13, "", "h-c.1"), func(w *Write) { w.Shard = "h-c" })},
		{"a term of another RayCluster", Reused, nil, with(write(13, "h-c.1", ""), func(w *Write) { w.Cluster = "ml/d" })},
	} {
		v := Judge(append(good(), c.write))
		var rules []Rule
		for _, violation := range v.Violations {
			rules = append(rules, violation.Rule)
		}
		if !slices.Contains(rules, c.rule) {
			t.Errorf("%s: broke %q, want %q", c.name, rules, c.rule)
		}
		for _, rule := range rules {
			if rule != c.rule && !slices.Contains(c.other, rule) {
				t.Errorf("%s: broke also %q", c.name, rule)
			}
		}
		broken[c.rule] = true
	}
	for _, rule := range Rules {
		if !broken[rule] {
			t.Errorf("no history breaks the rule %q", rule)
		}
	}
}

func with(w Write, change func(*Write)) Write {
	change(&w)
	return w
}

func TestAWriteThatTheLogLacksIsCounted(t *testing.T) {
	writes := slices.Delete(good(), 2, 3)
	if v := Judge(writes); v.Unlinked != 1 || len(v.Violations) > 0 {
		t.Errorf("%+v", v)
	}
	// The term that writes again is seen only in what the next write tests.
	hidden := append(good(), write(13, "h-a.9", "h-a.1"))
	if v := Judge(hidden); v.Unlinked != 1 || len(v.Violations) != 1 || v.Violations[0].Rule != Interleaved {
		t.Errorf("%+v", v)
	}
	unfenced := append(good(), with(write(13, "h-a.9", ""), func(w *Write) { w.Fenced = false }))
	if v := Judge(unfenced); v.Unfenced != 1 || v.Unlinked != 0 {
		t.Errorf("%+v", v)
	}
}

func TestTooLittleProvesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		writes []Write
		shards []string
		says   string
	}{
		"no write":                   {nil, []string{"h-a"}, "0 writes"},
		"no hand-over":               {good()[:2], []string{"h-a"}, "0 hand-overs"},
		"a shard that did not write": {good(), []string{"h-a", "h-d"}, "h-d has written nothing"},
		"no shard":                   {good(), nil, "no shard is named"},
	} {
		if err := Judge(c.writes).Vacuous(c.shards); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRandomHistories compares the judge with a slow definition: terms interleave if the writes of some term are not
// next to each other.
func TestRandomHistories(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	found := 0
	for range 2000 {
		var writes []Write
		for i := range 1 + random.IntN(7) {
			writes = append(writes, write(int64(i+1), fmt.Sprintf("h-%c.1", 'a'+random.IntN(3)), ""))
		}
		want := false
		for i := range writes {
			for j := range i {
				for k := range j {
					want = want || writes[i].Term == writes[k].Term && writes[j].Term != writes[i].Term
				}
			}
		}
		got := slices.ContainsFunc(Judge(writes).Violations, func(v Violation) bool { return v.Rule == Interleaved })
		if got != want {
			t.Fatalf("%t, want %t: %+v", got, want, writes)
		}
		if got {
			found++
		}
	}
	if found < 200 || found > 1800 {
		t.Errorf("%d of 2000 histories interleave, so they compare little", found)
	}
}
