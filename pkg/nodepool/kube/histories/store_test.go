package histories

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/pkg/nodepool"
)

var resource = schema.GroupResource{Resource: "configmaps"}

// fakeMaps is the ConfigMaps of a namespace.
type fakeMaps struct {
	objects map[string]*corev1.ConfigMap
	version int
	err     error // of the next calls
	// listed runs after a page is listed.
	listed func()
}

func (f *fakeMaps) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	if f.err != nil {
		return nil, f.err
	}
	if object := f.objects[name]; object != nil {
		return object.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

// List returns one object at a time.
func (f *fakeMaps) List(_ context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error) {
	if f.err != nil {
		return nil, f.err
	}
	if options.LabelSelector != Label+"=true" || options.Limit == 0 {
		return nil, errors.New("too much is listed")
	}
	list := &corev1.ConfigMapList{}
	names := slices.Sorted(maps.Keys(f.objects))
	names = slices.DeleteFunc(names, func(name string) bool { return name <= options.Continue })
	for i, name := range names {
		if f.objects[name].Labels[Label] != "true" {
			continue
		}
		list.Items = append(list.Items, *f.objects[name].DeepCopy())
		if i+1 < len(names) {
			list.Continue = name
		}
		break
	}
	if f.listed != nil {
		f.listed()
	}
	return list, nil
}

func (f *fakeMaps) Create(
	_ context.Context, object *corev1.ConfigMap, _ metav1.CreateOptions,
) (*corev1.ConfigMap, error) {
	return f.put(object)
}

func (f *fakeMaps) Update(
	_ context.Context, object *corev1.ConfigMap, _ metav1.UpdateOptions,
) (*corev1.ConfigMap, error) {
	if f.err == nil && f.objects[object.Name] == nil {
		return nil, apierrors.NewNotFound(resource, object.Name)
	}
	return f.put(object)
}

func (f *fakeMaps) put(object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if f.err != nil {
		return nil, f.err
	}
	f.version++
	stored := object.DeepCopy()
	stored.ResourceVersion = strconv.Itoa(f.version)
	f.objects[object.Name] = stored
	return stored.DeepCopy(), nil
}

func (f *fakeMaps) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	if f.err != nil {
		return f.err
	}
	if object := f.objects[name]; object == nil || object.ResourceVersion != *options.Preconditions.ResourceVersion {
		return apierrors.NewConflict(resource, name, errors.New("it has changed"))
	}
	delete(f.objects, name)
	return nil
}

var (
	llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	rec = nodepool.ClusterKey{Namespace: "ml", Name: "rec"}
	now = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
)

func newStore() (*Store, *fakeMaps) {
	f := &fakeMaps{objects: map[string]*corev1.ConfigMap{}}
	return &Store{f, "heliostat"}, f
}

func write(t *testing.T, s *Store, key nodepool.ClusterKey, history string, until time.Time) {
	t.Helper()
	if err := s.Write(context.Background(), key, []byte(history), until); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsWrittenIsReadBySomebodyElse(t *testing.T) {
	s, f := newStore()
	ctx := context.Background()
	if got, err := s.Read(ctx, llm); got != nil || err != nil {
		t.Errorf("before anything is written: %q, %v", got, err)
	}
	write(t, s, llm, "first", now)
	write(t, s, rec, "other", now)
	write(t, s, llm, "second", now)
	if len(f.objects) != 2 {
		t.Errorf("there are %d ConfigMaps, want one for each RayCluster", len(f.objects))
	}
	for key, want := range map[nodepool.ClusterKey]string{llm: "second", rec: "other"} {
		if got, err := s.Read(ctx, key); string(got) != want || err != nil {
			t.Errorf("of %s: %q, %v; want %q", key, got, err, want)
		}
	}
	object := f.objects[nameOf(llm)]
	want := map[string]string{"heliostat.dev/raycluster": "ml/llm", "heliostat.dev/until": "2026-03-02T00:00:00Z"}
	if diff := cmp.Diff(want, object.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	object.Annotations[clusterAnnotation] = "ml/other"
	if got, err := s.Read(ctx, llm); got != nil || err != nil {
		t.Errorf("of another RayCluster: %q, %v", got, err)
	}
}

func TestHistoriesThatNoLongerCountAreRemoved(t *testing.T) {
	s, f := newStore()
	write(t, s, llm, "old", now.Add(-time.Hour))
	write(t, s, rec, "new", now.Add(time.Hour))
	changed := nodepool.ClusterKey{Namespace: "dev", Name: "a"}
	write(t, s, changed, "changed", now.Add(-time.Hour))
	f.objects[nameOf(changed)].Annotations = nil
	f.objects["foreign"] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	removed, err := s.Sweep(context.Background(), now)
	if removed != 1 || err != nil || f.objects[nameOf(llm)] != nil || len(f.objects) != 3 {
		t.Errorf("removes %d: %v; left: %v", removed, err, slices.Collect(maps.Keys(f.objects)))
	}
}

func TestAHistoryThatIsWrittenMeanwhileStays(t *testing.T) {
	s, f := newStore()
	write(t, s, llm, "old", now.Add(-time.Hour))
	f.listed = func() { write(t, s, llm, "new", now.Add(time.Hour)) }
	if _, err := s.Sweep(context.Background(), now); err != nil || f.objects[nameOf(llm)] == nil {
		t.Errorf("it is gone: %v", err)
	}
}

func TestErrorsNameTheRayClusterAndTheConfigMap(t *testing.T) {
	s, f := newStore()
	f.err = apierrors.NewForbidden(resource, nameOf(llm), errors.New("no right"))
	_, err := s.Read(context.Background(), llm)
	if !errors.Is(err, nodepool.ErrDenied) ||
		!strings.Contains(err.Error(), "reading the history of demand of ml/llm in ConfigMap heliostat/heliostat-demand-") {
		t.Errorf("reading: %v", err)
	}
	if err := s.Write(context.Background(), llm, nil, now); !errors.Is(err, nodepool.ErrDenied) {
		t.Errorf("writing: %v", err)
	}
	f.err = errors.New("the API server is away")
	if _, err := s.Sweep(context.Background(), now); !errors.Is(err, f.err) {
		t.Errorf("removing: %v", err)
	}
	if _, err := s.Read(context.Background(), llm); !errors.Is(err, f.err) || errors.Is(err, nodepool.ErrDenied) {
		t.Errorf("reading: %v", err)
	}
}
