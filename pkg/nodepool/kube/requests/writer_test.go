package requests

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
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/raydemand"
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
		writer.backOff(requestKey{"ml", strconv.Itoa(i)}, now.Add(time.Duration(i)*time.Second))
	}
	if most := int(requestWritesPause / time.Second); len(writer.backOffUntil) != most {
		t.Errorf("%d requests rest, want those of the last %d s", len(writer.backOffUntil), most)
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
	o, key := callsOf(w.Store), nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	renewed, err := o.Renew(t.Context(), key, "a", w.now, func(*nodepool.OwnedRequest) error { return nil })
	read, _ := o.Get(key, "a")
	if want := w.now.Add(10 * time.Second); err != nil || !renewed.HeldUntil.Equal(want) || !read.HeldUntil.Equal(want) {
		t.Errorf("held until %v in the answer, until %v for who asks then, want %v; %v", renewed.HeldUntil, read.HeldUntil, want, err)
	}
}

// The API server answers a patch that names the UID of what is gone with a conflict.
func TestTheStatusOfWhatIsGoneIsNoFailure(t *testing.T) {
	there, writer := newOneRequest()
	gone := nodepool.OwnedUpdate{Namespace: "ml", Name: "a", UID: "uid of one before", Status: &nodepool.OwnedStatus{}}
	if err := writer.write(t.Context(), gone); err != nil || there.patches != 0 {
		t.Errorf("%d writes, %v", there.patches, err)
	}
}

func TestRequestsOfAClusterThatIsNotThereAreKnown(t *testing.T) {
	requests, _ := requestStore()
	key := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	_ = requests.Replace(nil, "4")
	_ = requests.Add(storedRequest("a", "5", "llm"))
	if !requests.Any(key) || len(callsOf(requests.Store).Of(key)) != 1 {
		t.Error("a request for a RayCluster that is not there is unknown")
	}
	_ = requests.Delete(storedRequest("a", "6", "llm"))
	if requests.Any(key) {
		t.Error("the request is gone")
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
	inWriter(t, func(report func(name, code string), w *Writer, s *slowRequests) {
		leave, err := w.requests.locks.call(context.Background(), requestKey{"ml", "a"})
		if err != nil {
			t.Fatal(err)
		}
		report("a", "old")
		time.Sleep(time.Second)
		report("a", "first")
		report("b", "not held up")
		leave()
		time.Sleep(lookAgain)
		synctest.Wait()
		report("a", "second")
		report("b", "beside")
		report("a", "third")
		time.Sleep(5 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		want := []string{"b not held up after 1s", "a first after 1.02s", "b beside after 2s", "a third after 2.02s"}
		if diff := cmp.Diff(want, s.written); diff != "" {
			t.Errorf("writes (-want +got): %s", diff)
		}
	})
}

// While callers write without end statuses are still written: urgent ones at once, the rest slowly.
func TestStatusesThatAreNotUrgentAreWrittenSlowlyWhileCallersWriteMuch(t *testing.T) {
	for _, c := range []struct {
		name   string
		calls  int // in every tenth of a second
		number int
		want   time.Duration
	}{
		{"callers write little", 1, 20, 0},
		{"callers write much", 10, 20, 20 * time.Second / ordinaryWrites},
	} {
		inWriter(t, func(report func(name, code string), w *Writer, s *slowRequests) {
			s.takes = time.Millisecond
			tenth := func() {
				for i := range c.calls {
					leave, err := w.requests.locks.call(context.Background(), requestKey{"ml", "call-" + strconv.Itoa(i)})
					if err != nil {
						t.Fatal(err)
					}
					leave()
				}
				time.Sleep(time.Second / 10)
			}
			for range 10 {
				tenth()
			}
			begun := time.Now()
			for i := range c.number {
				known := storedRequest(strconv.Itoa(i), "5", "llm")
				w.requests.Set(Decode(known))
				report(strconv.Itoa(i), "")
			}
			report("new", "pressing")
			for written := 0; written <= c.number; {
				tenth()
				s.mu.Lock()
				written = len(s.written)
				s.mu.Unlock()
				if time.Since(begun) > time.Minute {
					t.Fatalf("%s: %d are written after a minute", c.name, written)
				}
			}
			if took := time.Since(begun); took < c.want-time.Second/2 || took > c.want+time.Second/2 {
				t.Errorf("%s: written after %v, want about %v", c.name, took, c.want)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if at := slices.IndexFunc(s.written, func(w string) bool { return strings.HasPrefix(w, "new ") }); c.want > 0 && at > 1 {
				t.Errorf("%s: what is pressing is written after %d others", c.name, at)
			}
		})
	}
}

// Of two writes of one request that meet at the API server it refuses one, so a caller waits for a status that is being
// written, and for other callers.
func TestWritesOfOneRequestFollowEachOther(t *testing.T) {
	inWriter(t, func(report func(name, code string), w *Writer, s *slowRequests) {
		begun := time.Now()
		report("a", "reported")
		leave, err := w.requests.locks.call(context.Background(), requestKey{"ml", "a"})
		if err != nil || time.Since(begun) != s.takes {
			t.Fatalf("a caller's turn came after %v, want after that of the status, which takes %v; %v", time.Since(begun), s.takes, err)
		}
		impatient, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := w.requests.locks.call(impatient, requestKey{"ml", "a"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who does not wait longer is reported %v", err)
		}
		leave()
		if leave, err := w.requests.locks.call(context.Background(), requestKey{"ml", "a"}); err != nil {
			t.Errorf("after the turn: %v", err)
		} else {
			leave()
		}
		if left := len(w.requests.locks.writing); left != 0 {
			t.Errorf("%d turns are left", left)
		}
	})
}

// A status may wait for seconds to be written. Callers are not to wait for it, and the loop is to report it again where
// it could not be written.
func TestCallersSeeADecisionBeforeItIsWritten(t *testing.T) {
	inWriter(t, func(report func(name, code string), w *Writer, s *slowRequests) {
		w.requests.Set(Decode(storedRequest("a", "5", "llm")))
		looks := func(when, shown, written string) {
			t.Helper()
			known, _ := w.requests.get("ml", "a")
			key := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
			listed, kept := w.requests.shownOf(key)[0], w.requests.Of(key)[0]
			if known.Status.Code != shown || listed.Status.Code != shown || kept.Status.Code != written {
				t.Errorf("%s: got as %q, listed as %q, want %q; written as %q, want %q", when, known.Status.Code, listed.Status.Code, shown, kept.Status.Code, written)
			}
		}
		changed := w.requests.changes("ml", "a")
		report("a", "decided")
		looks("while it is being written", "decided", "")
		select {
		case <-changed:
		default:
			t.Error("who waits for the request is not woken")
		}
		w.Report([]nodepool.OwnedUpdate{{Namespace: "ml", Name: "a", UID: "another's", Status: &nodepool.OwnedStatus{Code: "of another"}}})
		looks("where one of that name before it gets an update", "", "")
		report("a", "newer")
		time.Sleep(s.takes)
		synctest.Wait()
		looks("when the first is written and a newer one waits", "newer", "")
		time.Sleep(s.takes + lookAgain)
		synctest.Wait()
		looks("after all writes, which the answers of this API server do not show", "", "")
		if left := len(w.requests.decided); left != 0 {
			t.Errorf("%d are still to be written", left)
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

// What one namespace has to be written must not delay what owners of another wait for.
func TestNamespacesAreWrittenInTurn(t *testing.T) {
	_, w := newOneRequest()
	update := func(namespace, name string) nodepool.OwnedUpdate {
		return nodepool.OwnedUpdate{Namespace: namespace, Name: name, UID: "uid", Status: &nodepool.OwnedStatus{State: raydemand.RequestCapped}}
	}
	var updates []nodepool.OwnedUpdate
	for i := range 4 {
		updates = append(updates, update("hostile", fmt.Sprint(i)))
	}
	w.Report(append(updates, update("ml", "a"), update("ml", "b")))
	var order []string
	for {
		update, leave, _ := w.take()
		if leave == nil {
			break
		}
		order = append(order, update.Namespace+"/"+update.Name)
		leave()
	}
	if diff := cmp.Diff([]string{"hostile/0", "ml/a", "hostile/1", "ml/b", "hostile/2", "hostile/3"}, order); diff != "" {
		t.Errorf("written (-want +got): %s", diff)
	}
}
