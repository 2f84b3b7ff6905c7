package nodes

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// onDemandClaimOf is a NodeClaim that allows on-demand machines alone.
func onDemandClaimOf(name string, met ...string) *unstructured.Unstructured {
	claim := nodeClaimOf(name, met...)
	requirements, _, _ := unstructured.NestedSlice(claim.Object, "spec", "requirements")
	_ = unstructured.SetNestedSlice(claim.Object, append(requirements, map[string]any{
		"key": "karpenter.sh/capacity-type", "operator": "In", "values": []any{"on-demand"},
	}), "spec", "requirements")
	return claim
}

func TestAGroupIsOutOfStockWhenItsNodeClaimFails(t *testing.T) {
	deleting := onDemandClaimOf("a")
	deleting.SetDeletionTimestamp(new(deleting.GetCreationTimestamp()))
	for name, c := range map[string]struct {
		change  func(*fakeClaims)
		events  func(string) bool
		tried   bool
		further func(*fakeClaims)
		// poolsRead is when NodePools were last read, before now.
		poolsRead time.Duration
		want      string
	}{
		"Karpenter reports it": {
			events: only("a"), tried: true, want: "Karpenter could not launch a machine of NodePool g1",
		},
		"the claim is deleted unlaunched": {
			change: func(f *fakeClaims) { f.stream.Modify(deleting) }, tried: true,
			want: "Karpenter could not launch a machine of NodePool g1",
		},
		"it is gone": {
			change: func(f *fakeClaims) { f.stream.Delete(onDemandClaimOf("a")) }, tried: true,
			want: "Karpenter could not launch a machine of NodePool g1",
		},
		"NodePools were read before it failed": {events: only("a"), tried: true, poolsRead: placingPause},
		"no launch for these pods failed":      {events: only("a")},
		"a launched claim is deleted": {
			change: func(f *fakeClaims) {
				f.stream.Modify(onDemandClaimOf("a", "Launched"))
				f.stream.Delete(onDemandClaimOf("a", "Launched"))
			}, tried: true,
		},
		"a later launch of the pool succeeds": {
			events: only("a"), tried: true,
			further: func(f *fakeClaims) { f.stream.Add(onDemandClaimOf("b", "Launched", "Registered", "Initialized")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := &fakeClaims{}
			besideClaims(t, client, new(true), func(t *testing.T, watched *claimWatch) {
				cluster := waitingCluster("llm", 1)
				cluster.Workers[0].LaunchFailed = c.tried
				cluster.Groups[0].PoolPods = []landing.PoolPods{{Pool: "g1", Provisioned: true}}
				look := func() string {
					cluster.Groups[0].OutOfStock = ""
					elapse(placingPause)
					watched.addTo(&cluster, c.events)
					watched.addFailures(&cluster, time.Now().Add(time.Millisecond-c.poolsRead))
					return cluster.Groups[0].OutOfStock
				}
				client.stream.Add(onDemandClaimOf("a"))
				c0 := c.events
				if c.events = quiet; c0 == nil {
					c0 = quiet
				}
				if got := look(); got != "" {
					t.Fatalf("%q before anything failed", got)
				}
				c.events = c0
				for _, change := range []func(*fakeClaims){c.change, c.further} {
					if change == nil {
						continue
					}
					look()
					change(client)
				}
				if got := look(); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// A NodePool that came while none could be read may have machines.
func TestNodePoolsAreAsOldAsTheirLastReading(t *testing.T) {
	status, pools := &fakeStatus{}, &fakeNodePools{text: `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"g1"},"spec":{}}`}
	besideNodes(t, &fakeNodes{}, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		w := &Watch{nodes: n, ceilings: newCeilingWatch(status, pools, slog.New(slog.DiscardHandler), n.setCeilings)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.ceilings.Start(ctx) }()
		turn.Lock()
		for _, step := range []struct {
			err     error
			takes   time.Duration
			is, not time.Duration // the age is at least and at most this
		}{
			{nil, time.Minute, poolsLag, 2 * ceilingPause},
			{errors.New("no answer"), 2 * time.Minute, 2 * time.Minute, 2*time.Minute + 2*ceilingPause},
			{nil, time.Second, poolsLag, poolsLag},
			{errors.New("no answer"), 2 * ceilingsLast, time.Since(time.Time{}), time.Since(time.Time{})},
		} {
			pools.err = step.err
			w.ceilings.ReadAgain()
			pass(step.takes)
			if got := time.Since(w.poolsSince()); got < step.is || got > step.not {
				t.Errorf("after %v with the error %v, NodePools are known as of %v ago, want %v to %v", step.takes, step.err, got, step.is, step.not)
			}
		}
		turn.Unlock()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
