package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// slowWrites takes a second for each write, and refuses one text.
type slowWrites struct {
	mu      sync.Mutex
	written []string
}

func (s *slowWrites) write(ctx context.Context, annotations map[string]any) error {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := annotations["a"].(string)
	s.written = append(s.written, text)
	if text == "bad" {
		return nodepool.ErrTooLarge
	}
	return nil
}

func TestCallersWhoMeetAreServedByTheWriteOfTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newWriteQueue()
		var s slowWrites
		var calls sync.WaitGroup
		begun := time.Now()
		ask := func(cluster, text string, after time.Duration, want error) {
			key := nodepool.ClusterKey{Namespace: "ml", Name: cluster}
			calls.Go(func() {
				if err := all.Write(t.Context(), key, map[string]any{"a": text}, s.write); !errors.Is(err, want) || time.Since(begun) != after {
					t.Errorf("%s of %s: %v after %v, want %v after %v", text, cluster, err, time.Since(begun), want, after)
				}
			})
			synctest.Wait()
		}
		ask("llm", "first", time.Second, nil)
		ask("other", "alone", time.Second, nil)
		for i := range 5 {
			ask("llm", fmt.Sprint(i), 2*time.Second, nil)
		}
		time.Sleep(1500 * time.Millisecond)
		ask("llm", "late", 3*time.Second, nodepool.ErrTooLarge)
		ask("llm", "bad", 3*time.Second, nodepool.ErrTooLarge)
		calls.Wait()
		synctest.Wait()
		slices.Sort(s.written)
		if want := []string{"4", "alone", "bad", "first"}; !slices.Equal(s.written, want) {
			t.Errorf("wrote %q, want %q", s.written, want)
		}
		if len(all.running)+len(all.waiting) > 0 {
			t.Errorf("%d and %d turns are left", len(all.running), len(all.waiting))
		}
	})
}

func TestACallerWhoGoesDoesNotBreakOffTheWriteOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newWriteQueue()
		var s slowWrites
		key := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := all.Write(impatient, key, map[string]any{"a": "one"}, s.write); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who does not wait is reported %v", err)
		}
		err := all.Write(t.Context(), key, map[string]any{"a": "two"}, s.write)
		if synctest.Wait(); err != nil || !slices.Equal(s.written, []string{"one", "two"}) {
			t.Errorf("%v, wrote %q", err, s.written)
		}
	})
}

func TestAWriteThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newWriteQueue()
		err := all.Write(t.Context(), nodepool.ClusterKey{Name: "llm"}, nil, func(ctx context.Context, _ map[string]any) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// More writes at once than the API server can make delay each other; callers who wait for a place join in one write.
func TestWritesOfManyRayClustersAreAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newWriteQueue()
		var calls sync.WaitGroup
		var mu sync.Mutex
		now, most, writes := 0, 0, 0
		write := func(context.Context, map[string]any) error {
			mu.Lock()
			now, writes = now+1, writes+1
			most = max(most, now)
			mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		}
		const clusters = 2 * writesAtOnce
		for range 3 {
			for i := range clusters {
				calls.Go(func() {
					if err := all.Write(t.Context(), nodepool.ClusterKey{Name: fmt.Sprint(i)}, nil, write); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
		}
		calls.Wait()
		// Those who had a place at once wrote once more for the two who came then.
		if most != writesAtOnce || writes != clusters+writesAtOnce {
			t.Errorf("%d writes, %d at once; want %d and %d", writes, most, clusters+writesAtOnce, writesAtOnce)
		}
	})
}

func TestNoRayClusterWaitsForWritesOfOthersThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newWriteQueue()
		for i := range 2 * writesAtOnce {
			go func() {
				_ = all.Write(t.Context(), nodepool.ClusterKey{Name: fmt.Sprint(i)}, nil, func(ctx context.Context, _ map[string]any) error {
					<-ctx.Done()
					return ctx.Err()
				})
			}()
		}
		synctest.Wait()
		begun := time.Now()
		err := all.Write(t.Context(), nodepool.ClusterKey{Name: "other"}, nil, func(context.Context, map[string]any) error { return nil })
		if err != nil || time.Since(begun) != slotTimeout {
			t.Errorf("%v after %v, want an end after %v", err, time.Since(begun), slotTimeout)
		}
		time.Sleep(2 * queuedWriteTimeout)
	})
}
