package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// oneRequest is an API server with one ResourceRequest, of which no watch tells.
type oneRequest struct {
	dynamic.NamespaceableResourceInterface
	object  *unstructured.Unstructured
	patches int
	deletes int
	last    string // patch that was tried
	// others is how many writes of others come in before the next ones of ours.
	others int
}

func (o *oneRequest) Namespace(string) dynamic.ResourceInterface { return o }

func (o *oneRequest) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return o.object.DeepCopy(), nil
}

// Patch takes over owners, as a merge patch that has them does, of the version that it names.
func (o *oneRequest) Patch(_ context.Context, _ string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	var given struct {
		Metadata struct {
			ResourceVersion string
			UID             types.UID
			OwnerReferences []metav1.OwnerReference
		}
	}
	o.last = string(patch)
	if err := json.Unmarshal(patch, &given); err != nil {
		return nil, err
	}
	if o.others > 0 {
		o.others--
		o.object.SetResourceVersion(o.object.GetResourceVersion() + "0")
	}
	version, of := given.Metadata.ResourceVersion, given.Metadata.UID
	if version != "" && version != o.object.GetResourceVersion() || of != "" && of != o.object.GetUID() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "resourcerequests"}, "a", errors.New("modified"))
	}
	o.patches++
	o.object.SetOwnerReferences(given.Metadata.OwnerReferences)
	return o.object.DeepCopy(), nil
}

func (o *oneRequest) Delete(context.Context, string, metav1.DeleteOptions, ...string) error {
	o.deletes++
	return nil
}

func newOneRequest() (*oneRequest, *requestWriter) {
	there := &oneRequest{object: storedRequest("a", "5", "llm")}
	requests := newOwnedRequests(there, nil, nil, slog.New(slog.DiscardHandler), func(nodepool.ClusterKey) {}, func(nodepool.ClusterKey) {})
	return there, newRequestWriter(requests, there, func() bool { return true }, slog.New(slog.DiscardHandler))
}

// The API server warns of owners that stand twice. Cycles that follow each other adopt until a watch tells that it is done.
func TestARequestIsAdoptedOnceHoweverOftenThatIsWanted(t *testing.T) {
	there, writer := newOneRequest()
	there.object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "release", UID: "uid-release"}})
	adopt := nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid-a", Adopt: &nodepool.ClusterReference{Name: "llm", UID: "uid-llm"}}
	for range 3 {
		if err := writer.write(t.Context(), adopt); err != nil {
			t.Fatal(err)
		}
	}
	var owners []string
	for _, owner := range there.object.GetOwnerReferences() {
		owners = append(owners, owner.Kind+" "+string(owner.UID))
	}
	if diff := cmp.Diff([]string{"ConfigMap uid-release", "RayCluster uid-llm"}, owners); diff != "" || there.patches != 1 {
		t.Errorf("%d writes, owners (-want +got): %s", there.patches, diff)
	}
	if known, _ := writer.requests.get("ml", "a"); known.ClusterUID != "uid-llm" {
		t.Errorf("the store still says that %q owns it", known.ClusterUID)
	}
}

func TestAnotherObjectOfTheNameIsNotAdopted(t *testing.T) {
	there, writer := newOneRequest()
	adopt := nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid of one before", Adopt: &nodepool.ClusterReference{Name: "llm", UID: "uid-llm"}}
	if err := writer.write(t.Context(), adopt); err != nil || there.patches != 0 {
		t.Errorf("%d writes, %v", there.patches, err)
	}
}

func TestARequestIsAdoptedWhileOthersWriteIt(t *testing.T) {
	there, writer := newOneRequest()
	there.others = 2
	adopt := nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid-a", Adopt: &nodepool.ClusterReference{Name: "llm", UID: "uid-llm"}}
	if err := writer.write(t.Context(), adopt); err != nil || there.patches != 1 || len(there.object.GetOwnerReferences()) != 1 {
		t.Errorf("%d writes, owners %v, %v", there.patches, there.object.GetOwnerReferences(), err)
	}
}

func TestOfRequestsThatCannotBeWrittenNoneIsRememberedForGood(t *testing.T) {
	_, writer := newOneRequest()
	now := time.Now()
	for i := range 100 {
		writer.rest(requestKey{"ml", strconv.Itoa(i)}, now.Add(time.Duration(i)*time.Second))
	}
	if most := int(requestWritesPause / time.Second); len(writer.restsUntil) != most {
		t.Errorf("%d requests rest, want those of the last %d s", len(writer.restsUntil), most)
	}
}

func TestANameThatIsTakenElsewhereDoesNotTellWhere(t *testing.T) {
	there, writer := newOneRequest()
	o := OwnedRequests{&Manager{requests: writer.requests}}
	known := decodeRequest(there.object)
	known.Cluster.Name = "secret"
	wanted := *decodeRequest(there.object)
	_, err := o.replace(t.Context(), wanted, known, func(*nodepool.OwnedRequest) error { return errors.New("it is of a secret owner") })
	if err = o.about("keeping", "a", wanted.Cluster, err); !errors.Is(err, nodepool.ErrRequestElsewhere) || strings.Contains(err.Error(), "secret") {
		t.Errorf("answered %v", err)
	}
}

// A lease that was not over before a start has a minute left, whoever asks and whatever he did.
func TestARenewalIsAnsweredWithTheGraceThatALeaseHas(t *testing.T) {
	there, _ := newOneRequest()
	w := newReadingWorld(t)
	there.object = leasedRequest("5", w.now.Add(-time.Hour), 10, "")
	w.client = there
	_ = w.Replace([]any{there.object}, "5")
	o, key := OwnedRequests{&Manager{requests: w.ownedRequests, source: one{}, floor: newFloor()}}, nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	renewed, err := o.Renew(t.Context(), key, "a", w.now, func(*nodepool.OwnedRequest) error { return nil })
	read, _ := o.Get(key, "a")
	if want := w.now.Add(10 * time.Second); err != nil || !renewed.HeldUntil.Equal(want) || !read.HeldUntil.Equal(want) {
		t.Errorf("held until %v in the answer, until %v for who asks then, want %v; %v", renewed.HeldUntil, read.HeldUntil, want, err)
	}
}

// one has any RayCluster.
type one struct{ objects }

func (one) rayCluster(nodepool.ClusterKey) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{Object: map[string]any{}}, nil
}

// The API server answers a patch that names the UID of what is gone with a conflict.
func TestTheStatusOfWhatIsGoneIsNoFailure(t *testing.T) {
	there, writer := newOneRequest()
	gone := nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid of one before", Status: &nodepool.OwnedStatus{}}
	if err := writer.write(t.Context(), gone); err != nil || there.patches != 0 {
		t.Errorf("%d writes, %v", there.patches, err)
	}
}

func TestAWorkerStaysForRequestsOfAClusterThatIsNotThere(t *testing.T) {
	requests, _ := requestStore()
	m := &Manager{requests: requests.ownedRequests, source: nothing{}}
	key := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	if m.worked(key) {
		t.Error("nobody asks for anything")
	}
	_ = requests.Add(storedRequest("a", "5", "llm"))
	if !m.worked(key) || len((OwnedRequests{m}).Of(key)) != 1 {
		t.Error("a request waits to be told")
	}
	_ = requests.Delete(storedRequest("a", "6", "llm"))
	if m.worked(key) {
		t.Error("the request is gone")
	}
}

// nothing has no RayClusters.
type nothing struct{ objects }

func (nothing) rayCluster(nodepool.ClusterKey) (*unstructured.Unstructured, error) { return nil, nil }

func TestARequestThatIsBeingDeletedTakesNoNewSpec(t *testing.T) {
	there, writer := newOneRequest()
	o := OwnedRequests{&Manager{requests: writer.requests}}
	there.object.SetDeletionTimestamp(new(metav1.Now()))
	known := decodeRequest(there.object)
	_, err := o.replace(t.Context(), *known, known, func(*nodepool.OwnedRequest) error { return nil })
	if !errors.Is(err, nodepool.ErrReadOnly) || there.patches != 0 {
		t.Errorf("%d writes, %v", there.patches, err)
	}
	writer.requests.set(known)
	writer.requests.deleted(known)
	writer.requests.set(known) // a watch tells that a finalizer keeps it
	if left, is := writer.requests.get("ml", "a"); !is || !left.Deleting {
		t.Errorf("read as %+v", left)
	}
}

func TestWhatNobodyWaitsForLetsCallersGoFirst(t *testing.T) {
	for _, c := range []struct {
		name   string
		others int
		want   time.Duration
	}{
		{"one caller alone has his answer soon", 1, 0},
		{"while the API server is behind with callers' writes", 5, yieldLongest},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, writer := newOneRequest()
			for range c.others {
				defer writer.requests.awaited()()
			}
			begun := time.Now()
			if goes := writer.yield(t.Context()); !goes || time.Since(begun) != c.want {
				t.Errorf("%s: goes %v after %v, want %v", c.name, goes, time.Since(begun), c.want)
			}
		})
	}
	_, writer := newOneRequest()
	writer.requests.awaited()()
	if left := writer.requests.underway.Load(); left != 0 {
		t.Errorf("%d writes are awaited after they are done", left)
	}
}

// slowRequests takes its time for each status, and notes which are written when.
type slowRequests struct {
	oneRequest
	takes   time.Duration
	begun   time.Time
	mu      sync.Mutex // guards written
	written []string
}

func (s *slowRequests) Namespace(string) dynamic.ResourceInterface { return s }

func (s *slowRequests) Patch(ctx context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	var given struct {
		Status struct{ Reason struct{ Code string } }
	}
	if err := json.Unmarshal(patch, &given); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.written = append(s.written, fmt.Sprintf("%s %s after %v", name, given.Status.Reason.Code, time.Since(s.begun)))
	s.mu.Unlock()
	if !sleep(ctx, s.takes) {
		return nil, ctx.Err()
	}
	return s.object.DeepCopy(), nil
}

// inWriter runs test beside a writer of statuses; time is synctest's.
func inWriter(t *testing.T, test func(tell func(name, code string), w *requestWriter, s *slowRequests)) {
	synctest.Test(t, func(t *testing.T) {
		_, w := newOneRequest()
		s := &slowRequests{oneRequest: oneRequest{object: storedRequest("a", "5", "llm")}, takes: time.Second, begun: time.Now()}
		w.client = s
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Start(ctx) }()
		synctest.Wait()
		test(func(name, code string) {
			w.Tell([]nodepool.OwnedUpdate{{Namespace: "ml", Name: name, UID: "uid-" + name, Status: &nodepool.OwnedStatus{Code: code}}})
			synctest.Wait()
		}, w, s)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// What is older must never be the last that is written, or who waits for his request sees it go back.
func TestANewerStatusIsWrittenLastAndReplacesWhatWaits(t *testing.T) {
	inWriter(t, func(tell func(name, code string), w *requestWriter, s *slowRequests) {
		calls := []func(){w.requests.awaited(), w.requests.awaited()}
		tell("a", "old")
		time.Sleep(yieldLongest / 2)
		tell("a", "first")
		time.Sleep(yieldLongest / 2)
		for _, done := range calls {
			done()
		}
		synctest.Wait()
		tell("a", "second")
		tell("b", "beside")
		tell("a", "third")
		time.Sleep(5 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		want := []string{"a first after 250ms", "b beside after 250ms", "a third after 1.25s"}
		if diff := cmp.Diff(want, s.written); diff != "" {
			t.Errorf("writes (-want +got): %s", diff)
		}
	})
}

// While callers write without end what becomes of requests is still told, a second late.
func TestStatusesDoNotStarveWhileCallersCome(t *testing.T) {
	inWriter(t, func(tell func(name, code string), w *requestWriter, s *slowRequests) {
		defer w.requests.awaited()()
		defer w.requests.awaited()()
		s.takes = time.Millisecond
		for i := range 20 {
			tell(strconv.Itoa(i), "new")
		}
		time.Sleep(yieldWhile + 100*time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.written) < 20 {
			t.Errorf("%d of 20 are written: %v", len(s.written), s.written)
		}
		if early := slices.IndexFunc(s.written, func(w string) bool { return strings.HasSuffix(w, "new after 0s") }); early >= 0 {
			t.Errorf("%s did not let callers go first", s.written[early])
		}
	})
}
