package costs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
)

var resource = schema.GroupResource{Resource: "configmaps"}

// server holds ConfigMaps as the API server does.
type server struct {
	objects map[string]*corev1.ConfigMap
	err     error
	// race lets another process create the object first.
	race map[string][]byte
}

func (s *server) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	if s.err != nil {
		return nil, s.err
	}
	if object := s.objects[name]; object != nil {
		return object.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (s *server) Create(_ context.Context, object *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	if s.race != nil {
		s.objects[object.Name], s.race = &corev1.ConfigMap{BinaryData: s.race}, nil
	}
	if s.objects[object.Name] != nil {
		return nil, apierrors.NewAlreadyExists(resource, object.Name)
	}
	s.objects[object.Name] = object.DeepCopy()
	return object, nil
}

func (s *server) Patch(
	_ context.Context, name string, kind types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string,
) (*corev1.ConfigMap, error) {
	if s.err != nil {
		return nil, s.err
	}
	object := s.objects[name]
	if object == nil {
		return nil, apierrors.NewNotFound(resource, name)
	}
	var merge struct{ BinaryData map[string]*[]byte }
	if err := json.Unmarshal(patch, &merge); err != nil || kind != types.MergePatchType {
		return nil, fmt.Errorf("patch %s (%s): %w", patch, kind, err)
	}
	for key, value := range merge.BinaryData {
		if value == nil {
			delete(object.BinaryData, key)
			continue
		}
		object.BinaryData[key] = *value
	}
	return object.DeepCopy(), nil
}

func TestTextsAreKeptByRayCluster(t *testing.T) {
	ctx := context.Background()
	api := &server{objects: map[string]*corev1.ConfigMap{}}
	s := NewStore(api, "heliostat-costs")
	want := map[nodepool.ClusterKey][]byte{
		{Namespace: "ml", Name: "llm"}:          []byte("one"),
		{Namespace: "ml", Name: "(other)"}:      {0, 255, 31},
		{Namespace: "ml-llm", Name: "x.y"}:      []byte("three"),
		{Namespace: "(other)", Name: "(other)"}: []byte("four"),
		{Namespace: "other", Name: "other"}:     []byte("five"),
	}
	if err := s.Save(ctx, want); err != nil {
		t.Fatal(err)
	}
	got, err := NewStore(api, "heliostat-costs").Load(ctx)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	llm := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	delete(want, llm)
	if err := s.Save(ctx, map[nodepool.ClusterKey][]byte{llm: nil}); err != nil {
		t.Fatal(err)
	}
	got, err = s.Load(ctx)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("after a removal: %v (-want +got):\n%s", err, diff)
	}
	if err := s.Save(ctx, map[nodepool.ClusterKey][]byte{{Namespace: "never", Name: "seen"}: nil}); err != nil {
		t.Error(err)
	}
	for name := range api.objects {
		for key := range api.objects[name].BinaryData {
			if _, ours := keyOf(key); !ours {
				t.Errorf("key %q cannot be read", key)
			}
		}
	}
}

func TestTwoProcessesWriteTextsOfTheirOwn(t *testing.T) {
	ctx := context.Background()
	key := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	api := &server{objects: map[string]*corev1.ConfigMap{}, race: map[string][]byte{"ml_other": []byte("theirs")}}
	s := NewStore(api, "c")
	if err := s.Save(ctx, map[nodepool.ClusterKey][]byte{key: []byte("ours")}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load(ctx)
	want := map[nodepool.ClusterKey][]byte{key: []byte("ours"), {Namespace: "ml", Name: "other"}: []byte("theirs")}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestTheRoomIsSharedByTheTextsOfAConfigMap(t *testing.T) {
	ctx := context.Background()
	s := NewStore(&server{objects: map[string]*corev1.ConfigMap{}}, "c")
	texts := map[nodepool.ClusterKey][]byte{}
	for i := range 1000 {
		texts[nodepool.ClusterKey{Namespace: "ml", Name: fmt.Sprint("c", i)}] = []byte("x")
	}
	if err := s.Save(ctx, texts); err != nil {
		t.Fatal(err)
	}
	var all [Parts]int
	for key := range texts {
		all[partOf(key)] += s.Room(key)
	}
	for part, sum := range all {
		if sum > room || sum < room/2 {
			t.Errorf("the texts of part %d may take %d bytes together", part, sum)
		}
	}
}

// TestTextsThatDoNotFitGetASmallerShare has an API server that refuses what is too large for a ConfigMap.
func TestTextsThatDoNotFitGetASmallerShare(t *testing.T) {
	ctx := context.Background()
	key := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	for _, refusal := range []error{
		apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "c-0", nil), apierrors.NewRequestEntityTooLargeError("limit"),
	} {
		s := NewStore(&server{err: refusal}, "c")
		before := s.Room(key)
		texts := map[nodepool.ClusterKey][]byte{}
		for i := range 1000 {
			texts[nodepool.ClusterKey{Namespace: "ml", Name: fmt.Sprint("c", i)}] = []byte("x")
		}
		if err := s.Save(ctx, texts); !errors.Is(err, nodepool.ErrFull) {
			t.Errorf("got %v", err)
		}
		if after := s.Room(key); after > before/5 || after < before/20 {
			t.Errorf("the room was %d bytes, and is %d with 125 more texts", before, after)
		}
	}
}

func TestARightThatLacksIsDistinguished(t *testing.T) {
	s := NewStore(&server{err: apierrors.NewForbidden(resource, "c-0", errors.New("no"))}, "c")
	if _, err := s.Load(context.Background()); !errors.Is(err, nodepool.ErrDenied) {
		t.Errorf("got %v", err)
	}
	s = NewStore(&server{err: apierrors.NewTimeoutError("slow", 1)}, "c")
	if _, err := s.Load(context.Background()); err == nil || errors.Is(err, nodepool.ErrDenied) {
		t.Errorf("got %v", err)
	}
}
