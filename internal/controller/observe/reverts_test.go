package observe

import (
	"cmp"
	"strconv"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// story plays a story of one RayCluster with the groups a and b. Its words are
//
//	us:a=4       Heliostat writes replicas of a, or of several groups at once: us:a=4,b=1
//	NAME:a=0     the field manager NAME writes, and Heliostat reads the RayCluster
//	read         Heliostat reads the RayCluster again
//	stale        Heliostat reads the RayCluster as it was before the last write
//	3m           time passes
//	fight=NAME   there must be a fight with NAME now; fight=none: with nobody
//	found=A,B    there must be findings about A and B now; found=none: about nobody
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
			s.wants(what, manager, s.history.Texts(s.now)...)
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

// wants checks which field managers texts are about, and that there is a finding for each that has a text.
func (s *story) wants(what, managers string, texts ...string) {
	s.Helper()
	var got []string
	for _, text := range texts {
		if name, _, named := strings.Cut(strings.TrimPrefix(text, "field manager "), ": "); named {
			got = append(got, name)
		}
	}
	if all := cmp.Or(strings.Join(got, ","), "none"); all != managers {
		s.Errorf("%s at %s: %s, want %s", what, clockTime(s.now), all, managers)
	}
	if findings := s.history.Findings(s.now, &s.cluster); len(findings) != len(s.history.Texts(s.now)) || len(findings) < len(got) {
		s.Errorf("%s at %s: %q, and the findings are %+v", what, clockTime(s.now), texts, findings)
	}
}

func TestAFightIsFoundAndEnds(t *testing.T) {
	for _, test := range []struct {
		name, story string
		reverts     int
	}{
		{"nothing is set back", "us:a=4 read 1m us:a=2 read fight=none", 0},
		{"once is none", "us:a=4 argocd:a=0 fight=none found=none 1m read fight=none", 1},
		{"twice in ten minutes", "us:a=4 argocd:a=0 3m us:a=4 fight=none argocd:a=0 fight=argocd", 2},
		{"exactly ten minutes apart", "us:a=4 argocd:a=0 10m us:a=4 argocd:a=0 fight=argocd", 2},
		{"more than ten minutes apart", "us:a=4 argocd:a=0 10m1s us:a=4 argocd:a=0 fight=none found=argocd", 2},
		{"more than an hour apart", "us:a=4 argocd:a=0 60m1s us:a=4 argocd:a=0 found=none", 2},
		{"a finding for an hour", "us:a=4 argocd:a=0 1m us:a=4 argocd:a=0 60m found=argocd read found=argocd 1s found=none", 2},
		{"upwards too", "us:a=0 argocd:a=2 1m us:a=1 argocd:a=2 fight=argocd", 2},
		{"it ends ten minutes after the last time", "us:a=4 argocd:a=0 9m us:a=4 argocd:a=0 10m read fight=argocd 1s read fight=none", 2},
		{"each time makes it longer", "us:a=4 argocd:a=0 9m us:a=4 argocd:a=0 9m us:a=4 argocd:a=0 9m read fight=argocd 1m1s fight=none", 3},
		{"after its end one more time is none", "us:a=4 argocd:a=0 us:a=4 argocd:a=0 11m fight=none us:a=4 argocd:a=0 fight=none", 3},
		{"two managers, once each", "us:a=4 argocd:a=0 1m us:a=4 kubectl:a=1 fight=none", 2},
		{"two managers, the later one counts", "us:a=4 x:a=0 us:a=4 x:a=0 1m us:a=4 y:a=0 us:a=4 y:a=0 fight=y found=x,y", 4},
		{"a slow one beside a fight", "us:a=4 y:a=0 49m us:a=4 x:a=0 us:a=4 x:a=0 1m us:a=4 y:a=0 fight=x found=x,y 9m fight=x 1s fight=none found=x,y", 4},
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

func TestTheFindingSaysWhatHappensToBusyWorkers(t *testing.T) {
	s := newStory(t)
	s.tell("us:b=4 argocd-controller:b=1 3m us:b=4 argocd-controller:b=1")
	for _, test := range []struct {
		inTree bool
		why    string
	}{
		{false, "busy ones too, and Heliostat cannot prevent that"},
		{true, "the operator keeps the workers beyond the lower number"},
	} {
		s.cluster.InTreeAutoscaling = test.inTree
		f := s.history.Findings(s.now, &s.cluster)[0]
		if f.Code != FindingReverted || f.Severity != raydemand.Error || f.Field != "spec.workerGroupSpecs[1].replicas" ||
			f.Object != "RayCluster ml/llm" {
			t.Errorf("finding %+v", f)
		}
		for _, want := range []string{test.why, "until 12:13:00 UTC", "groups still grow"} {
			if !strings.Contains(f.Why, want) {
				t.Errorf("why is %q, want %q in it", f.Why, want)
			}
		}
		if want := "field manager argocd-controller changed group b from 4 to 1 at 12:03:00 UTC, revert no. 2"; f.Seen != want {
			t.Errorf("seen is %q, want %q", f.Seen, want)
		}
	}
	s.now = s.now.Add(revertWindow + time.Second)
	if why := s.history.Findings(s.now, &s.cluster)[0].Why; strings.Contains(why, "until") {
		t.Errorf("after the fight, why is %q", why)
	}
}

func TestAManagerWithoutANameFights(t *testing.T) {
	s := newStory(t)
	s.tell("us:a=4 :a=0 us:a=4 :a=0")
	if got := s.history.Pause(s.now); !strings.HasPrefix(got, "a field manager without a name: ") {
		t.Errorf("pause is %q", got)
	}
}

// TestTheNamesOfFieldManagersAreBounded because anyone who writes to the RayCluster chooses one. The latest stay.
func TestTheNamesOfFieldManagersAreBounded(t *testing.T) {
	s := newStory(t)
	for i := range 3 * mostManagers {
		s.tell("us:a=4 manager" + strconv.Itoa(i) + ":a=0 10s")
	}
	if n := len(s.history.reverts); n != mostManagers {
		t.Errorf("%d field managers are remembered, want %d", n, mostManagers)
	}
	s.tell("us:a=4 manager95:a=0 fight=manager95 us:a=4 manager0:a=0 found=manager95")
}
