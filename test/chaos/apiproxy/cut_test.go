package apiproxy

import (
	"context"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestACutLetsThroughWhatItsKindSays(t *testing.T) {
	for _, c := range []struct {
		kind Cut
		// during and after are how many writes the API server has got during the cut and after it.
		during, after int
	}{{Refuse, 0, 0}, {Hold, 0, 1}, {Deaf, 1, 1}} {
		t.Run(string(c.kind), func(t *testing.T) {
			p, client, wrote := proxied(t)
			got := func() (n int) {
				for _, r := range wrote() {
					if r.Code == http.StatusOK || c.kind == Deaf && r.Code == 0 {
						n++
					}
				}
				return n
			}
			end := p.Add(Fault{Cut: c.kind})
			begun := p.cutting()
			writing, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			go func() {
				for writing.Err() == nil && begun.held.Load() == 0 {
					time.Sleep(time.Millisecond)
				}
				giveUp() // what is held is not answered
			}()
			pods := client.CoreV1().Pods("ml")
			if _, err := pods.Patch(writing, "p", types.MergePatchType, []byte("{}"), metav1.PatchOptions{}); err == nil {
				t.Error("a write is answered")
			}
			reading, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := pods.Get(reading, "p", metav1.GetOptions{}); err == nil {
				t.Error("a read is answered")
			}
			if n := got(); n != c.during {
				t.Errorf("%d writes arrived during the cut, want %d", n, c.during)
			}
			end()
			for limit := time.Now().Add(5 * time.Second); got() < c.after && time.Now().Before(limit); {
				time.Sleep(10 * time.Millisecond)
			}
			if n := got(); n != c.after {
				t.Errorf("%d writes arrived in the end, want %d", n, c.after)
			}
			if _, err := pods.Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
				t.Errorf("after the cut: %v", err)
			}
		})
	}
}

func TestACutEndsWatches(t *testing.T) {
	p, client, _ := proxied(t)
	w, err := client.CoreV1().Pods("ml").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Add(Fault{Cut: Refuse})()
	select {
	case <-w.ResultChan():
	case <-time.After(10 * time.Second):
		t.Error("a watch goes on during a cut")
	}
}
