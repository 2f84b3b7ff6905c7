package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/rig"
)

// comparison is the response of GET …/shadow.
type comparison struct {
	Writer      string
	Agreement   *float64
	OursFirst   int
	TheirsFirst int
	Groups      []struct {
		Name         string
		Ours, Theirs int
	}
	Differences []struct {
		At           time.Time
		Until        *time.Time
		Group        string
		Ours, Theirs int
		Outcome      string
		LeadSeconds  *float64
		Reason       struct{ Code, Message string }
	}
}

// leadTold matches the text in the table that shows how much earlier one side decided.
var leadTold = regexp.MustCompile(`[0-9](ms|s) earlier`)

// TestShadowReportsWhatItWouldDecideBesideRaysOwnSidecar runs `serve --mode shadow` beside Ray's Python autoscaler,
// which scales one task up and down. Both decide. The comparison reports both, and Heliostat writes nothing to the
// RayCluster.
func TestShadowReportsWhatItWouldDecideBesideRaysOwnSidecar(t *testing.T) {
	t.Parallel()
	s := prepare(t, "theirs")
	writers := s.writers()
	s.create(rig.Cluster{Namespace: s.namespace, Name: s.name, IdleSeconds: 5, InTree: true, Groups: []rig.Group{gpu}})
	looker, err := lab.Serve(s.ctx, "--mode", "shadow", "--namespaces", s.namespace)
	s.must(err)
	t.Cleanup(looker.Kill)

	s.compared(looker, "both at rest", func(c comparison) bool {
		return len(c.Groups) == 1 && c.Groups[0].Ours == 0 && c.Groups[0].Theirs == 0 && c.Agreement != nil
	})
	driver := s.drive()
	s.configured(driver, "in shadow", nil)
	// Ray's autoscaler looks every 5 s, and could be the first to see the task. So it stands still until Heliostat has.
	theirs, err := rig.FindProcess("--cluster-name", s.name, "--cluster-namespace", s.namespace)
	s.must(err)
	s.must(syscall.Kill(theirs, syscall.SIGSTOP))
	s.do(driver, task("work", 1))
	s.compared(looker, "one worker wanted by Heliostat alone", func(c comparison) bool {
		return len(c.Differences) > 0 && c.Differences[0].Until == nil && c.Groups[0].Ours == 1 && c.Groups[0].Theirs == 0
	})
	s.must(syscall.Kill(theirs, syscall.SIGCONT))
	up := s.compared(looker, "one worker wanted by both, after a difference", func(c comparison) bool {
		return len(c.Differences) > 0 && c.Differences[0].Until != nil && c.Groups[0].Ours == 1 && c.Groups[0].Theirs == 1
	})
	first := up.Differences[len(up.Differences)-1]
	if first.Group != "gpu" || first.Outcome != "ours_first" || first.LeadSeconds == nil || *first.LeadSeconds <= 0 || first.Ours != 1 || first.Theirs != 0 ||
		!strings.Contains(first.Reason.Message, "GPU 1") {
		s.Errorf("the task's difference is %+v, want ours first, one pod for the task", first)
	}
	if up.Writer == "" || up.Writer == "heliostat" {
		s.Errorf("theirs are written by %q", up.Writer)
	}
	s.see(driver, "work", "running")
	s.do(driver, release("work"))
	down := s.compared(looker, "no worker wanted by either", func(c comparison) bool {
		return len(c.Differences) > 0 && c.Differences[0].Until != nil && c.Groups[0].Ours == 0 && c.Groups[0].Theirs == 0
	})
	table, err := exec.CommandContext(s.ctx, lab.Program, "shadow", "--server", looker.URL, s.namespace+"/"+s.name).CombinedOutput()
	t.Logf("autoscaler shadow:\n%s", table)
	if err != nil || !strings.Contains(string(table), "last written by "+down.Writer) || !leadTold.Match(table) {
		s.Errorf("autoscaler shadow ends with %v and does not tell writer and lead", err)
	}
	if managers := writers(); slices.Contains(managers, "heliostat") || len(managers) < 2 {
		s.Errorf("the RayCluster was written by %q, want others and never heliostat", managers)
	}
}

// compared waits until a Heliostat's comparison satisfies want, and returns it.
func (s *scene) compared(looker *rig.Heliostat, what string, want func(comparison) bool) comparison {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	for {
		var got comparison
		status, answer, err := looker.Call(ctx, http.MethodGet, "/v1/namespaces/"+s.namespace+"/rayclusters/"+s.name+"/shadow", "")
		if err == nil && status == http.StatusOK {
			s.must(json.Unmarshal(answer, &got))
			if want(got) {
				return got
			}
		}
		if ctx.Err() != nil {
			s.Fatalf("waiting for %s: status %d, %v: %s", what, status, err, answer)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// writers collects the field managers of every later version of the RayCluster. The last version is not enough, because
// the list of worker groups belongs to the last writer.
func (s *scene) writers() func() []string {
	var mu sync.Mutex
	seen := map[string]bool{}
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			watching, err := lab.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for event := range watching.ResultChan() {
				if object, ok := event.Object.(*unstructured.Unstructured); ok {
					mu.Lock()
					for _, entry := range object.GetManagedFields() {
						seen[entry.Manager] = true
					}
					mu.Unlock()
				}
			}
		}
	}()
	return func() []string {
		cancel()
		<-done
		mu.Lock()
		defer mu.Unlock()
		var managers []string
		for manager := range seen {
			managers = append(managers, manager)
		}
		slices.Sort(managers)
		return managers
	}
}
