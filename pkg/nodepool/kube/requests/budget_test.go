package requests

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// shelf is an API server's ResourceRequests, read by name. It counts reads.
type shelf struct {
	dynamic.NamespaceableResourceInterface
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	reads   int
	fails   error
	// failing is the name of the one object that cannot be read.
	failing string
	// takes is how long a read takes.
	takes time.Duration
}

func (s *shelf) Namespace(string) dynamic.ResourceInterface { return s }

func (s *shelf) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if name == s.failing {
		return nil, apierrors.NewForbidden(v1alpha1.Resource.GroupResource(), name, io.EOF)
	}
	if s.fails != nil {
		return nil, s.fails
	}
	if object := s.objects[name]; object != nil {
		return object.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource.GroupResource(), name)
}

// budgetWorld is a store with a budget, before an API server that has all objects.
type budgetWorld struct {
	*namespaceStore
	t     *testing.T
	shelf *shelf
	made  int
}

func newBudgetWorld(t *testing.T, budget int64) *budgetWorld {
	s, _ := requestStore()
	w := &budgetWorld{namespaceStore: s, t: t, shelf: &shelf{objects: map[string]*unstructured.Unstructured{}}}
	s.client, s.changed, s.statusChanged = w.shelf, func(nodepool.ClusterKey) {}, func(nodepool.ClusterKey) {}
	s.budget = newBudget(budget)
	return w
}

// object is a request of so many bundles; each is unlike all others.
func (w *budgetWorld) object(namespace, owner, name string, bundles int) *unstructured.Unstructured {
	w.made++
	object := storedRequest(name, fmt.Sprint(100+w.made), "llm")
	object.SetNamespace(namespace)
	object.SetUID(types.UID("uid-" + name))
	object.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 1, 1, 0, 0, w.made, 0, time.UTC)))
	list := make([]any, bundles)
	for i := range list {
		list[i] = map[string]any{"resources": map[string]any{fmt.Sprintf("%s-%d", name, i): int64(1)}, "count": int64(1)}
	}
	_ = unstructured.SetNestedField(object.Object, owner, "spec", "owner")
	_ = unstructured.SetNestedSlice(object.Object, list, "spec", "bundles")
	w.shelf.mu.Lock()
	w.shelf.objects[name] = object
	w.shelf.mu.Unlock()
	return object
}

func (w *budgetWorld) gone(name string) {
	w.shelf.mu.Lock()
	object := w.shelf.objects[name]
	delete(w.shelf.objects, name)
	w.shelf.mu.Unlock()
	_ = w.Delete(object)
}

// kept lists those that count, and checks what always holds.
func (w *budgetWorld) kept() []string {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var kept []string
	var held int64
	without := 0
	for key, r := range w.objects {
		if r.Omitted == nil {
			held += r.Bytes
		} else if len(r.Requests) > 0 || r.Admission == nodepool.Admitted {
			w.t.Errorf("%s is omitted and yet kept: %d bundles, admission %d", key.name, len(r.Requests), r.Admission)
		}
		if r.Admission == nodepool.Admitted {
			kept = append(kept, key.name)
		} else {
			without++
		}
	}
	if held != w.budget.held || held > w.budget.limit || without != w.budget.without {
		w.t.Errorf("%d bytes are held, counted are %d, the budget is %d; %d have no place, counted are %d", held, w.budget.held, w.budget.limit, without, w.budget.without)
	}
	slices.Sort(kept)
	return kept
}

// settle lets the budget be divided until nothing changes.
func (w *budgetWorld) settle() []string {
	synctest.Wait()
	time.Sleep(10 * rereadPause)
	synctest.Wait()
	return w.kept()
}

// inBudget runs a test in which time passes only when all wait.
func inBudget(t *testing.T, budget int64, test func(w *budgetWorld)) {
	synctest.Test(t, func(t *testing.T) {
		w := newBudgetWorld(t, budget)
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { w.admitAll(ctx) })
		test(w)
		cancel()
		done.Wait()
	})
}

// ofBytes is the footprint of a request with so many bundles.
func ofBytes(t *testing.T, bundles int) int64 {
	w := newBudgetWorld(t, 1<<30)
	return Decode(w.object("ml", "ann", "request-0", bundles)).Bytes
}

func TestAnHonestOwnerKeepsItsRequestsBesideOneThatFillsTheBudget(t *testing.T) {
	large, small := ofBytes(t, 100), ofBytes(t, 1)
	inBudget(t, 5*large+4*small, func(w *budgetWorld) {
		_ = w.Replace(nil, "1")
		for i := range 20 {
			_ = w.Add(w.object("hostile", "mallory", fmt.Sprintf("request-%02d", i), 100))
		}
		want := []string{"request-00", "request-01", "request-02", "request-03", "request-04"}
		if diff := cmp.Diff(want, w.settle()); diff != "" {
			t.Fatalf("of an owner alone the oldest are kept (-want +got): %s", diff)
		}
		_ = w.Add(w.object("ml", "ann", "small-a", 1))
		_ = w.Add(w.object("ml", "ann", "small-b", 1))
		_ = w.Add(w.object("ml", "ann", "large-c", 100))
		want = []string{"large-c", "request-00", "request-01", "request-02", "request-03", "small-a", "small-b"}
		if diff := cmp.Diff(want, w.settle()); diff != "" {
			t.Fatalf("beside an honest owner (-want +got): %s", diff)
		}
		reads := w.shelf.reads
		w.settle()
		if w.shelf.reads != reads {
			t.Errorf("%d reads while nothing changes", w.shelf.reads-reads)
		}
		refused, _ := w.get("hostile", "request-04")
		status := refused.Current()
		if refused.Admission != nodepool.Refused || refused.Counts("", time.Now()) || status.State != raydemand.RequestCapped || status.Code != raydemand.CodeOverMemory {
			t.Errorf("what is refused has the admission %d and the status %+v", refused.Admission, status)
		}
		for _, word := range []string{"mallory", "hostile", "--request-memory", "KiB"} {
			if !strings.Contains(status.Message, word) {
				t.Errorf("the message %q lacks %q", status.Message, word)
			}
		}
	})
}

func TestARefusedRequestIsReadAgainWhenThereIsRoom(t *testing.T) {
	large := ofBytes(t, 100)
	inBudget(t, 2*large+large/2, func(w *budgetWorld) {
		_ = w.Replace(nil, "1")
		for i := range 4 {
			_ = w.Add(w.object("ml", "ann", fmt.Sprintf("request-%d", i), 100))
		}
		before := w.settle()
		changed := w.changes("ml", "request-2")
		w.gone("request-0")
		if diff := cmp.Diff([]string{"request-1", "request-2"}, w.settle()); diff != "" || !slices.Equal(before, []string{"request-0", "request-1"}) {
			t.Errorf("before %v; after (-want +got): %s", before, diff)
		}
		if r, _ := w.get("ml", "request-2"); len(r.Requests) != 100 || r.Omitted != nil {
			t.Errorf("what was read again has %d bundles", len(r.Requests))
		}
		select {
		case <-changed:
		default:
			t.Error("a caller that waits for the request is not woken")
		}
	})
}

func TestNothingIsTakenAwayWhileARequestWithAPlaceIsStillToBeRead(t *testing.T) {
	large := ofBytes(t, 100)
	inBudget(t, 2*large+large/2, func(w *budgetWorld) {
		_ = w.Replace(nil, "1")
		for i := range 3 {
			_ = w.Add(w.object("ml", "ann", fmt.Sprintf("request-%d", i), 100))
		}
		w.settle()
		cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}}
		w.AddTo(&cluster)
		if cluster.OwnedUnknown != "" || len(cluster.Findings) != 1 || cluster.Findings[0].Code != RequestsOverMemory {
			t.Errorf("with one refused: unknown %q, findings %v", cluster.OwnedUnknown, cluster.Findings)
		}
		w.shelf.mu.Lock()
		w.shelf.fails = apierrors.NewInternalError(io.EOF)
		w.shelf.mu.Unlock()
		w.gone("request-0")
		w.settle()
		cluster = nodepool.Cluster{Key: cluster.Key}
		if w.AddTo(&cluster); cluster.OwnedUnknown == "" {
			t.Error("a request that cannot be read is taken for none")
		}
		w.shelf.mu.Lock()
		w.shelf.fails = nil
		w.shelf.mu.Unlock()
		w.settle()
		cluster = nodepool.Cluster{Key: cluster.Key}
		if w.AddTo(&cluster); cluster.OwnedUnknown != "" || len(cluster.Findings) != 0 {
			t.Errorf("once it is read: unknown %q, findings %v", cluster.OwnedUnknown, cluster.Findings)
		}
	})
}

// A restart, and any other order of events, finds the same.
func TestWhoHasAPlaceDoesNotDependOnTheOrderOfEvents(t *testing.T) {
	const budget = 200_000
	for seed := range uint64(20) {
		var first []string
		for round := range uint64(3) {
			inBudget(t, budget, func(w *budgetWorld) {
				random := rand.New(rand.NewPCG(seed, 7))
				var objects []*unstructured.Unstructured
				for i := range 60 {
					object := w.object(fmt.Sprint("ns-", random.IntN(3)), fmt.Sprint("owner-", random.IntN(3)), fmt.Sprintf("request-%02d", i), 1+random.IntN(60))
					objects = append(objects, object)
				}
				rand.New(rand.NewPCG(seed, 100+round)).Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
				listed := 0
				if round > 0 { // round 0 has it all from the watch
					listed = random.IntN(len(objects))
				}
				var list []any
				for _, object := range objects[:listed] {
					list = append(list, object)
				}
				_ = w.Replace(list, "1")
				for i, object := range objects[listed:] {
					_ = w.Add(object)
					if i%10 == 0 {
						w.settle()
					}
					w.kept()
				}
				kept := w.settle()
				if round == 0 {
					first = kept
				}
				if diff := cmp.Diff(first, kept); diff != "" || len(kept) == 0 || len(kept) == len(objects) {
					t.Fatalf("seed %d, round %d: %d kept; differs from the first by (-first +now): %s", seed, round, len(kept), diff)
				}
			})
		}
	}
}

func TestAStatusDoesNotMoveAnybody(t *testing.T) {
	large := ofBytes(t, 100)
	inBudget(t, 2*large+large/2, func(w *budgetWorld) {
		_ = w.Replace(nil, "1")
		for i := range 4 {
			_ = w.Add(w.object("ml", "ann", fmt.Sprintf("request-%d", i), 100))
		}
		before := w.settle()
		reads := w.shelf.reads
		for _, object := range slices.Collect(maps.Values(w.shelf.objects)) {
			object = object.DeepCopy()
			object.SetResourceVersion("9" + object.GetResourceVersion())
			object.Object["status"] = map[string]any{"state": "Capped", "reason": map[string]any{"code": raydemand.CodeOverMemory}}
			_ = w.Update(object)
		}
		if diff := cmp.Diff(before, w.settle()); diff != "" || w.shelf.reads != reads {
			t.Errorf("%d reads; (-before +after): %s", w.shelf.reads-reads, diff)
		}
	})
}

// The page ends with an error where an item comes before the store has taken the one two before it.
func TestAListIsTakenItemByItem(t *testing.T) {
	w := newBudgetWorld(t, 1<<30)
	in, out := io.Pipe()
	go func() {
		_, _ = io.WriteString(out, `{"kind": "ResourceRequestList", "metadata": {"resourceVersion": "7"}, "items": [`)
		for i := range 5 {
			text, _ := w.object("ml", "ann", fmt.Sprintf("request-%d", i), 1).MarshalJSON()
			if i > 0 {
				_, _ = io.WriteString(out, ",")
			}
			_, _ = out.Write(text)
			if i > 1 && !w.hasSoon(fmt.Sprintf("request-%d", i-2)) {
				_ = out.CloseWithError(fmt.Errorf("item %d was not taken when item %d came", i-2, i))
				return
			}
		}
		_, _ = io.WriteString(out, `]}`)
		_ = out.Close()
	}()
	pages := 0
	list, err := w.list(t.Context(), func(context.Context, string, string) (io.ReadCloser, error) {
		pages++
		return in, nil
	})
	if err != nil || len(list.Items) != 5 || list.ResourceVersion != "7" || pages != 1 {
		t.Fatalf("%d pages, list %+v, error %v", pages, list, err)
	}
	for i := range list.Items {
		if list.Items[i].Name != fmt.Sprintf("request-%d", i) {
			t.Errorf("item %d is %q", i, list.Items[i].Name)
		}
	}
}

// hasSoon waits until the store has a request.
func (w *budgetWorld) hasSoon(name string) bool {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, there := w.get("ml", name); there {
			return true
		}
	}
	return false
}

func TestAListIsReadPageByPage(t *testing.T) {
	w := newBudgetWorld(t, 1<<30)
	text := func(name string) string {
		text, _ := w.object("ml", "ann", name, 1).MarshalJSON()
		return string(text)
	}
	pages := map[string]string{
		"":     `{"items": [` + text("a") + `], "metadata": {"resourceVersion": "8", "continue": "next"}}`,
		"next": `{"metadata": {"resourceVersion": "8"}, "items": [` + text("b") + `]}`,
	}
	list, err := w.list(t.Context(), func(_ context.Context, _, from string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(pages[from])), nil
	})
	if err != nil || len(list.Items) != 2 || list.ResourceVersion != "8" || list.Continue != "" {
		t.Errorf("list %+v, error %v", list, err)
	}
	for wrong, page := range map[string]string{"an array": `[]`, "half a page": `{"items": [`, "no object": `{"items": [1]}`} {
		if _, err := w.list(t.Context(), func(context.Context, string, string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(page)), nil
		}); err == nil {
			t.Errorf("%s is taken for a list", wrong)
		}
	}
}

// A streamed list is held by the reflector until it is whole. What it holds must not be the objects.
func TestAStreamedListHoldsNamesAlone(t *testing.T) {
	w := newBudgetWorld(t, 1<<30)
	left, err := w.Transformer()(w.object("ml", "ann", "a", 50))
	if _, is := left.(*takenRequest); !is || err != nil {
		t.Fatalf("left of an object is %T, %v", left, err)
	}
	if r, there := w.get("ml", "a"); !there || len(r.Requests) != 50 {
		t.Error("the object is not taken")
	}
	_ = w.Replace([]any{left}, "200")
	if _, there := w.get("ml", "a"); !there {
		t.Error("the end of the list forgets what it has named")
	}
	_ = w.Replace(nil, "300")
	if _, there := w.get("ml", "a"); there {
		t.Error("a list without the object does not forget it")
	}
}

func TestARequestThatCannotBeReadKeepsThoseOfOtherNamespacesNotWaiting(t *testing.T) {
	large := ofBytes(t, 100)
	inBudget(t, 10*large, func(w *budgetWorld) {
		_ = w.Replace(nil, "1")
		for i := range 20 {
			_ = w.Add(w.object("hostile", "mallory", fmt.Sprintf("request-%02d", i), 100))
		}
		w.settle()
		w.shelf.failing = "unreadable"
		_ = w.Add(w.object("broken", "bob", "unreadable", 120))
		_ = w.Add(w.object("ml", "ann", "readable", 250))
		if kept := w.settle(); !slices.Contains(kept, "readable") {
			t.Errorf("kept are %v; want readable among them, whose namespace can be read", kept)
		}
	})
}

// TestWhoComesWhileManyRequestsAreReadIsNotLast because reads of many may take minutes.
func TestWhoComesWhileManyRequestsAreReadIsNotLast(t *testing.T) {
	const many = 600
	one := ofBytes(t, 4)
	inBudget(t, (many+10)*one, func(w *budgetWorld) {
		_ = w.Replace(nil, "1")
		blocker := w.object("hostile", "mallory", "blocker", 4*(many-10))
		_ = w.Add(blocker)
		for i := range many {
			_ = w.Add(w.object("busy", fmt.Sprintf("owner-%d", i), fmt.Sprintf("request-%04d", i), 4))
		}
		w.settle()
		w.shelf.takes = 100 * time.Millisecond
		w.gone("blocker") // now those without a place get one, and are read one by one
		time.Sleep(500 * time.Millisecond)
		_ = w.Add(w.object("ml", "ann", "small", 1))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if kept := w.kept(); !slices.Contains(kept, "small") {
			t.Errorf("after 5 s %d are kept, and the small one of another namespace is not", len(kept))
		}
	})
}
