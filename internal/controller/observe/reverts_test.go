package observe

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// story plays a story of one RayCluster with the groups a and b. Its words are
//
//	us:a=4       Heliostat writes replicas of a, or of several groups at once: us:a=4,b=1
//	NAME:a=0     the field manager NAME writes, and Heliostat reads the RayCluster
//	read         Heliostat reads the RayCluster again
//	stale        Heliostat reads the RayCluster as it was before the last write
//	3m           time passes
//	fight=NAME   there must be a fight with NAME now; fight=none: with nobody
//	found=NAME   there must be a finding about NAME now; found=none: about nobody
type story struct {
	*testing.T
	now     time.Time
	cluster nodepool.Cluster
	before  nodepool.Cluster
	history Reverts
	reverts int
}

func newStory(t *testing.T) *story {
	s := &story{T: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	s.cluster = nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, Generation: 1,
		Groups: []nodepool.WorkerGroup{{Name: "a"}, {Name: "b", Index: 1}}}
	return s
}

func (s *story) tell(words string) {
	s.Helper()
	for word := range strings.FieldsSeq(words) {
		name, changes, writes := strings.Cut(word, ":")
		wait, err := time.ParseDuration(word)
		what, manager, asks := strings.Cut(word, "=")
		switch {
		case writes:
			s.write(name, changes)
		case err == nil:
			s.now = s.now.Add(wait)
		case word == "read":
			s.read(s.cluster)
		case word == "stale":
			s.read(s.before)
		case asks && what == "fight":
			s.wants(what, manager, s.history.Pause(s.now))
		case asks && what == "found":
			s.wants(what, manager, s.history.Text(s.now))
		default:
			s.Fatalf("unknown word %q", word)
		}
	}
}

func (s *story) write(manager, changes string) {
	s.Helper()
	s.before = s.cluster
	s.before.Groups = append([]nodepool.WorkerGroup(nil), s.cluster.Groups...)
	var targets []nodepool.Target
	for change := range strings.SplitSeq(changes, ",") {
		name, number, _ := strings.Cut(change, "=")
		replicas, err := strconv.Atoi(number)
		if err != nil {
			s.Fatal(err)
		}
		group, _ := s.cluster.Group(name)
		s.cluster.Groups[group.Index].Replicas = replicas
		targets = append(targets, nodepool.Target{Group: name, Index: group.Index, Replicas: replicas})
	}
	s.cluster.Generation++
	s.cluster.ScaledBy = manager
	if manager == "us" {
		s.cluster.ScaledBy = nodepool.FieldManager
		s.history.Wrote(s.cluster.Generation, targets)
		return
	}
	s.read(s.cluster)
}

func (s *story) read(cluster nodepool.Cluster) {
	if s.history.Observe(s.now, &cluster) {
		s.reverts++
	}
}

// wants checks which field manager a text is about.
func (s *story) wants(what, manager, text string) {
	s.Helper()
	if manager == "none" && text != "" || manager != "none" && !strings.HasPrefix(text, "field manager "+strconv.Quote(manager)) {
		s.Errorf("%s at %s: %q, want %s", what, clockTime(s.now), text, manager)
	}
}

func TestAFightIsFoundAndEnds(t *testing.T) {
	for _, test := range []struct {
		name, story string
		reverts     int
	}{
		{"nothing is set back", "us:a=4 read 1m us:a=2 read fight=none", 0},
		{"once is none", "us:a=4 argocd:a=0 fight=none found=none 1m read fight=none", 1},
		{"twice within an hour", "us:a=4 argocd:a=0 3m us:a=4 fight=none argocd:a=0 fight=argocd", 2},
		{"an hour apart", "us:a=4 argocd:a=0 60m us:a=4 argocd:a=0 fight=argocd found=argocd", 2},
		{"more than an hour apart", "us:a=4 argocd:a=0 60m1s us:a=4 argocd:a=0 fight=none found=none", 2},
		{"a finding for an hour", "us:a=4 argocd:a=0 1m us:a=4 argocd:a=0 60m found=argocd read found=argocd 1s found=none", 2},
		{"upwards too", "us:a=0 argocd:a=2 1m us:a=1 argocd:a=2 fight=argocd", 2},
		{"it ends ten minutes after the last time", "us:a=4 argocd:a=0 9m us:a=4 argocd:a=0 10m read fight=argocd 1s read fight=none", 2},
		{"each time makes it longer", "us:a=4 argocd:a=0 9m us:a=4 argocd:a=0 9m us:a=4 argocd:a=0 9m read fight=argocd 1m1s fight=none", 3},
		{"after its end it begins again", "us:a=4 argocd:a=0 us:a=4 argocd:a=0 11m fight=none us:a=4 argocd:a=0 fight=argocd", 3},
		{"two managers fight too", "us:a=4 kubectl:a=1 1m us:a=4 argocd:a=0 fight=argocd", 2},
		{"several groups at once are one revert", "us:a=4,b=4 argocd:a=0,b=0 fight=none read fight=none", 1},
		{"several writes before it are one revert", "us:a=4 us:b=2 us:a=3 argocd:a=0,b=0 fight=none", 1},
		{"a change of a group that Heliostat never wrote", "us:a=4 argocd:b=3 1m argocd:b=2 fight=none", 0},
		{"a change without a write of ours in between", "us:a=4 argocd:a=0 1m argocd:a=1 1m argocd:a=2 fight=none", 1},
		{"the same number is no revert", "us:a=4 argocd:a=4 us:a=5 argocd:a=5 fight=none", 0},
		{"another Heliostat that led", "us:a=4 heliostat:a=2 us:a=4 heliostat:a=2 fight=none", 0},
		{"an older reading", "us:a=4 stale us:a=5 stale fight=none", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStory(t)
			s.tell(test.story)
			if s.reverts != test.reverts {
				t.Errorf("%d reverts, want %d", s.reverts, test.reverts)
			}
		})
	}
}
