package apiproxy

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// proxied returns a client behind a proxy, and what it wrote. The server behind answers every request with a pod, and
// holds watches open.
func proxied(t *testing.T) (*Proxy, kubernetes.Interface, func() []Request) {
	t.Helper()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if watches(r) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Pod", "apiVersion": "v1", "metadata": map[string]any{"name": "p"}})
	}))
	t.Cleanup(behind.Close)
	var mu sync.Mutex
	var wrote []Request
	p, err := Start("127.0.0.1", &rest.Config{Host: behind.URL}, func(r Request) {
		mu.Lock()
		defer mu.Unlock()
		wrote = append(wrote, r)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: p.URL, QPS: -1})
	return p, client, func() []Request {
		mu.Lock()
		defer mu.Unlock()
		return append([]Request(nil), wrote...)
	}
}

func TestAWriteIsReportedWithItsAnswer(t *testing.T) {
	p, client, wrote := proxied(t)
	patch := func() error {
		_, err := client.CoreV1().Pods("ml").Patch(t.Context(), "p", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
		return err
	}
	if err := patch(); err != nil {
		t.Fatal(err)
	}
	remove := p.Add(Fault{Code: http.StatusConflict, Verb: http.MethodPatch})
	if err := patch(); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if _, err := client.CoreV1().Pods("ml").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Errorf("a read during conflicts of patches: %v", err)
	}
	remove()
	for range 2 {
		if err := patch(); err != nil {
			t.Errorf("after the fault: %v", err)
		}
	}
	// A request is reported after its answer, so the client may be faster.
	got := wrote()
	for limit := time.Now().Add(10 * time.Second); len(got) < 4 && time.Now().Before(limit); got = wrote() {
		time.Sleep(time.Millisecond)
	}
	if len(got) != 4 || got[0].Code != 200 || got[1].Code != 409 {
		t.Fatalf("requests %+v", got)
	}
	if r := got[0]; r.Verb != "PATCH" || r.Resource != "pods" || r.Namespace != "ml" || r.Name != "p" || r.Subresource != "status" {
		t.Errorf("request %+v", r)
	}
}

func TestEverySecondRequestPassesSoThatAClientMakesProgress(t *testing.T) {
	p, client, _ := proxied(t)
	p.Add(Fault{Code: http.StatusTooManyRequests})
	begun := time.Now()
	if _, err := client.CoreV1().Pods("ml").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Error(err) // client-go tries again after Retry-After
	}
	if took := time.Since(begun); took < time.Second {
		t.Errorf("answered after %s, without a wait", took)
	}
}

func TestWatchesAreCutAndExpire(t *testing.T) {
	p, client, _ := proxied(t)
	open := func(ctx context.Context) (<-chan struct{}, error) {
		w, err := client.CoreV1().Pods("ml").Watch(ctx, metav1.ListOptions{ResourceVersion: "5"})
		if err != nil {
			return nil, err
		}
		ended := make(chan struct{})
		go func() {
			for range w.ResultChan() {
			}
			close(ended)
		}()
		return ended, nil
	}
	ended, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.ExpireWatches(time.Minute)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the watch was not cut")
	}
	if _, err := open(t.Context()); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch that continues: %v, want that its version is gone", err)
	}
}

func TestADelayDelays(t *testing.T) {
	p, client, _ := proxied(t)
	p.Add(Fault{Delay: 200 * time.Millisecond})
	begun := time.Now()
	if _, err := client.CoreV1().Pods("ml").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 200*time.Millisecond {
		t.Errorf("answered after %s", took)
	}
}
