package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// oneRequest is an API server with one ResourceRequest, that no watch reports.
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

func newOneRequest() (*oneRequest, *Writer) {
	there := &oneRequest{object: storedRequest("a", "5", "llm")}
	requests := storeOn(there, nil)
	return there, NewWriter(requests, there, func(nodepool.ClusterKey) bool { return true }, slog.New(slog.DiscardHandler))
}

// The API server warns of owners that stand twice. Cycles that follow each other adopt until a watch reports that it is
// done.
func TestARequestIsAdoptedOnceHoweverOftenThatIsWanted(t *testing.T) {
	there, writer := newOneRequest()
	there.object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "release", UID: "uid-release"}})
	adopt := &nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid-a", Adopt: &nodepool.ClusterReference{Name: "llm", UID: "uid-llm"}}
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
	adopt := &nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid of one before", Adopt: &nodepool.ClusterReference{Name: "llm", UID: "uid-llm"}}
	if err := writer.write(t.Context(), adopt); err != nil || there.patches != 0 {
		t.Errorf("%d writes, %v", there.patches, err)
	}
}

func TestARequestIsAdoptedWhileOthersWriteIt(t *testing.T) {
	there, writer := newOneRequest()
	there.others = 2
	adopt := &nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid-a", Adopt: &nodepool.ClusterReference{Name: "llm", UID: "uid-llm"}}
	if err := writer.write(t.Context(), adopt); err != nil || there.patches != 1 || len(there.object.GetOwnerReferences()) != 1 {
		t.Errorf("%d writes, owners %v, %v", there.patches, there.object.GetOwnerReferences(), err)
	}
}

func TestANameThatIsTakenElsewhereDoesNotRevealWhere(t *testing.T) {
	there, writer := newOneRequest()
	o := callsOf(writer.requests)
	known := Decode(there.object)
	known.Cluster.Name = "secret"
	wanted := *Decode(there.object)
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
	o := callsOf(w.Store)
	renewed, _, err := o.Put(t.Context(), *Decode(there.object), anybody)
	read, _ := o.Get(llm, "a")
	if want := w.now.Add(10 * time.Second); err != nil || !renewed.HeldUntil.Equal(want) || !read.HeldUntil.Equal(want) {
		t.Errorf("held until %v in the answer, until %v for who asks then, want %v; %v", renewed.HeldUntil, read.HeldUntil, want, err)
	}
}

// The API server answers a patch that names the UID of what is gone with a conflict.
func TestTheStatusOfWhatIsGoneIsNoFailure(t *testing.T) {
	there, writer := newOneRequest()
	gone := nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid of one before", Status: &nodepool.OwnedStatus{}}
	if err := writer.write(t.Context(), &gone); err != nil || there.patches != 0 {
		t.Errorf("%d writes, %v", there.patches, err)
	}
}

func TestARequestThatIsBeingDeletedTakesNoNewSpec(t *testing.T) {
	there, writer := newOneRequest()
	o := callsOf(writer.requests)
	there.object.SetDeletionTimestamp(new(metav1.Now()))
	known := Decode(there.object)
	_, err := o.replace(t.Context(), *known, known, func(*nodepool.OwnedRequest) error { return nil })
	if !errors.Is(err, nodepool.ErrReadOnly) || there.patches != 0 {
		t.Errorf("%d writes, %v", there.patches, err)
	}
	writer.requests.Set(known)
	writer.requests.deleted(known)
	writer.requests.Set(known) // a watch reports that a finalizer keeps it
	if left, is := writer.requests.get("ml", "a"); !is || !left.Deleting {
		t.Errorf("read as %+v", left)
	}
}

// slowRequests takes its time for each status, and notes which are written when.
type slowRequests struct {
	oneRequest
	takes   time.Duration
	begun   time.Time
	mu      sync.Mutex // guards what follows
	written []string
	fails   int // how many of the next writes fail
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
	fails := s.fails > 0
	s.fails = max(0, s.fails-1)
	s.mu.Unlock()
	if fails {
		return nil, errors.New("no answer")
	}
	if !reflector.Sleep(ctx, s.takes) {
		return nil, ctx.Err()
	}
	return s.object.DeepCopy(), nil
}

// inWriter runs test beside a writer of statuses; time is synctest's.
func inWriter(t *testing.T, test func(report func(name, code string), w *Writer, s *slowRequests)) {
	synctest.Test(t, func(t *testing.T) {
		_, w := newOneRequest()
		s := &slowRequests{oneRequest: oneRequest{object: storedRequest("a", "5", "llm")}, takes: time.Second, begun: time.Now()}
		w.client = s
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Start(ctx) }()
		synctest.Wait()
		test(func(name, code string) {
			w.Report([]nodepool.OwnedUpdate{{Namespace: "ml", Name: name, UID: "uid-" + name, Status: &nodepool.OwnedStatus{Code: code}}})
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
	inWriter(t, func(report func(name, code string), _ *Writer, s *slowRequests) {
		report("a", "first")
		report("a", "second")
		report("b", "beside")
		report("a", "third")
		time.Sleep(5 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		want := []string{"a first after 0s", "b beside after 0s", "a third after 1s"}
		if diff := cmp.Diff(want, s.written); diff != "" {
			t.Errorf("writes (-want +got): %s", diff)
		}
	})
}

// The loop reports what it finds with each cycle until the object says so.
func TestWhatWaitsOrIsBeingWrittenIsNotWrittenAgain(t *testing.T) {
	inWriter(t, func(report func(name, code string), w *Writer, s *slowRequests) {
		for range 3 {
			report("a", "same")
			time.Sleep(s.takes / 4)
		}
		time.Sleep(10 * s.takes)
		s.mu.Lock()
		defer s.mu.Unlock()
		if diff := cmp.Diff([]string{"a same after 0s"}, s.written); diff != "" {
			t.Errorf("writes (-want +got): %s", diff)
		}
	})
}

// A status may be refused for good, for example by a webhook. What expired long ago must go nevertheless, and who
// changes his request all the time must not cause more writes that fail.
func TestANewerUpdateReplacesWhatFailsAndWaitsForItsPause(t *testing.T) {
	remove := nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid-a", Delete: true}
	adopt := nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid-a", Adopt: &nodepool.ClusterReference{Name: "llm", UID: "uid-llm"}}
	for name, c := range map[string]struct {
		newer            func(i int) nodepool.OwnedUpdate
		patches, deletes int
		last             string // write
	}{
		"status": {func(i int) nodepool.OwnedUpdate {
			return nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid-a", Status: &nodepool.OwnedStatus{Code: strconv.Itoa(i)}}
		}, 6, 0, "a 30 after 31s"}, // after 0, 1, 3, 7, 15 and 31 s
		"delete":     {func(int) nodepool.OwnedUpdate { return remove }, 1, 1, "a refused after 0s"},
		"lone adopt": {func(int) nodepool.OwnedUpdate { return adopt }, 6, 0, "a  after 31s"},
	} {
		t.Run(name, func(t *testing.T) {
			inWriter(t, func(report func(name, code string), w *Writer, s *slowRequests) {
				s.fails = 1000
				report("a", "refused")
				time.Sleep(s.takes / 2) // no report comes at the moment of a write
				for i := range 60 {
					if s.deletes == 0 {
						w.Report([]nodepool.OwnedUpdate{c.newer(i)})
					}
					time.Sleep(s.takes)
					synctest.Wait()
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.written) != c.patches || s.written[c.patches-1] != c.last || s.deletes != c.deletes || c.deletes > 0 && len(w.waiting) > 0 {
					t.Errorf("%d deletes, writes %q, %v wait", s.deletes, s.written, w.waiting)
				}
			})
		})
	}
}
