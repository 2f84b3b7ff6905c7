package kube

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// besidePool runs test beside a pool and the number of its cycles; time is synctest's, so nothing really waits.
func besidePool(t *testing.T, test func(p *pool, run *atomic.Int64)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		p := newPool(func(nodepool.ClusterKey) bool { return true }, slog.New(slog.DiscardHandler))
		var run atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.Run(ctx, func(context.Context, nodepool.ClusterKey, bool) time.Duration { run.Add(1); return 0 })
		}()
		synctest.Wait()
		test(p, &run)
		cancel()
		<-ended
	})
}

// conflicting answers the next PATCH with a conflict, and those after it well.
func conflicting(server *apiServer) {
	server.patched = metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict,
	}
	server.answered = func() { server.patched = metav1.Status{} }
}

func TestAPlainRequestTakesOneCallUnlessWhatIsKnownIsOld(t *testing.T) {
	frozen := strings.Replace(twoGroups, "heliostat.dev/mode", "heliostat.dev/freeze: 'true', heliostat.dev/mode", 1)
	ask := []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: 1}}
	for _, c := range []struct {
		name           string
		stored, cached string
		conflict       bool
		want           []string
		err            error
	}{
		{"nothing has changed", twoGroups, twoGroups, false, []string{"PATCH"}, nil},
		{"something else has changed", twoGroups, twoGroups, true, []string{"PATCH", "GET", "PATCH"}, nil},
		{"it was frozen a moment ago", frozen, twoGroups, true, []string{"PATCH", "GET"}, nodepool.ErrReadOnly},
		{"it was unfrozen a moment ago", twoGroups, frozen, false, []string{"GET", "PATCH"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := &apiServer{stored: rayClusterOf(t, c.stored, "9")}
			if c.conflict {
				conflicting(server)
			}
			m := managerOf(t, server, rayClusterOf(t, c.cached, "8"))
			err := m.SetResourceRequests(t.Context(), llm, ask, time.Time{})
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("error is %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(c.want, server.methods()); diff != "" {
				t.Errorf("calls (-want +got): %s", diff)
			}
			if got := written(t, server); !strings.Contains(got, `"resourceVersion":"`) {
				t.Errorf("wrote without the version that it was read at: %s", got)
			}
		})
	}
}

// A sidecar does not watch its RayCluster, so the write itself requests the cycle.
func TestAWriteOfASidecarRequestsItsCycle(t *testing.T) {
	for _, single := range []*nodepool.ClusterKey{nil, &llm} {
		besidePool(t, func(p *pool, run *atomic.Int64) {
			m := managerOf(t, &apiServer{stored: rayClusterOf(t, twoGroups, "9")}, rayClusterOf(t, twoGroups, "9"))
			m.pool, m.options.Single = p, single
			must(t, m.SetResourceRequests(context.Background(), llm, nil, time.Time{}))
			synctest.Wait()
			if requested := run.Load() > 0; requested != (single != nil) {
				t.Errorf("of a sidecar: %v; a cycle was requested: %v", single != nil, requested)
			}
		})
	}
}

func TestWhatCallersAskDoesNotWaitForWhatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{stored: rayClusterOf(t, twoGroups, "9")}
		m := managerOf(t, server, rayClusterOf(t, twoGroups, "9"))
		m.config = &rest.Config{Host: "http://api.invalid", Transport: server, QPS: 1, Burst: 1}
		must(t, m.connectDynamic(&http.Client{Transport: server}))
		for range 3 {
			if _, err := m.getRayCluster(t.Context(), m.rayClusters, llm); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		if err := m.SetFreeze(t.Context(), llm, true); err != nil || time.Since(begun) > 0 {
			t.Errorf("waited %v, %v", time.Since(begun), err)
		}
		conflicting(server)
		if err := m.SetResourceRequests(t.Context(), llm, nil, time.Time{}); err != nil || time.Since(begun) > time.Second/2 {
			t.Errorf("a request that meets another write waited %v, %v", time.Since(begun), err)
		}
	})
}

func TestRequestsFromAWatchArePlannedInSteps(t *testing.T) {
	besidePool(t, func(p *pool, run *atomic.Int64) {
		m := managerOf(t, &apiServer{}, rayClusterOf(t, twoGroups, "8"))
		m.pool = p
		last := &unstructured.Unstructured{Object: rayClusterOf(t, twoGroups, "9")}
		for i := range 100 {
			now := last.DeepCopy()
			now.SetResourceVersion(strconv.Itoa(10 + i))
			now.SetAnnotations(map[string]string{decode.ResourceRequestsAnnotation: strconv.Itoa(i)})
			m.clusterUpdated(last, now)
			last = now
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if n := run.Load(); n < 10 || n > 11 {
			t.Errorf("%d cycles in a second of another process's writes, want one every 100 ms", n)
		}
		before := run.Load()
		frozen := last.DeepCopy()
		frozen.SetResourceVersion("999")
		m.clusterUpdated(last, frozen)
		if synctest.Wait(); run.Load() != before+1 {
			t.Error("what else has changed waits")
		}
	})
}

// written is the body of the last PATCH.
func written(t *testing.T, server *apiServer) string {
	t.Helper()
	for i := len(server.requests) - 1; i >= 0; i-- {
		if r := server.requests[i]; r.Method == http.MethodPatch {
			body, err := io.ReadAll(r.Body)
			must(t, err)
			return string(body)
		}
	}
	t.Fatal("nothing was written")
	return ""
}
