package kube

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// inNamespaces holds the objects of one kind of the served namespaces. Without the right to read them there are none.
type inNamespaces[T metav1.Object] struct {
	source     func(namespace string) reflector.Source
	namespaces []string
	log        *slog.Logger
	// matters reports whether plans may change with an object that was another before.
	matters func(before, now T) bool
	changed func(namespace string)

	mu sync.Mutex
	// Guarded by mu. all has the objects by namespace and name, forbidden the served namespaces that may not be read.
	all       map[string]map[string]T
	forbidden map[string]bool
}

// newInNamespaces takes the client of a kind in a namespace; changed is called for a namespace, or for all with "".
func newInNamespaces[T interface {
	metav1.Object
	runtime.Object
}, L runtime.Object, C reflector.Client[L]](
	name string, kind T, client func(namespace string) C, namespaces []string, log *slog.Logger,
	matters func(before, now T) bool, changed func(string),
) *inNamespaces[T] {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &inNamespaces[T]{namespaces: namespaces, log: log.With("kind", name), matters: matters, changed: changed,
		source: func(namespace string) reflector.Source {
			return reflector.Of(name, kind, client(namespace), metav1.ListOptions{})
		},
		all: map[string]map[string]T{}, forbidden: map[string]bool{}}
}

// Start reads until ctx ends.
func (w *inNamespaces[T]) Start(ctx context.Context) error {
	var reads sync.WaitGroup
	for _, namespace := range w.namespaces {
		source := w.source(namespace)
		source.Forbidden = func(err error) { w.forbid(namespace, err) }
		source.Failed = func(err error) { w.log.Debug("reading failed; retrying", "reason", err) }
		reads.Go(func() {
			source.Into(ctx, &reflector.Store[T]{Put: w.put, Remove: w.remove,
				ReplaceAll: func(list []T, _ string) { w.replace(namespace, list) }})
		})
	}
	reads.Wait()
	return nil
}

func (w *inNamespaces[T]) put(object T) {
	w.mu.Lock()
	before, known := w.all[object.GetNamespace()][object.GetName()]
	w.keep(object)
	w.mu.Unlock()
	if !known || w.matters(before, object) {
		w.changed(object.GetNamespace())
	}
}

// keep stores an object. The caller holds mu.
func (w *inNamespaces[T]) keep(object T) {
	if w.all[object.GetNamespace()] == nil {
		w.all[object.GetNamespace()] = map[string]T{}
	}
	w.all[object.GetNamespace()][object.GetName()] = object
}

// forbid forgets the objects of a namespace, or of all, that this process may not read.
func (w *inNamespaces[T]) forbid(namespace string, err error) {
	w.mu.Lock()
	before := w.forbidden[namespace]
	w.mu.Unlock()
	if before {
		return
	}
	w.log.Info("reading is forbidden, so plans do not know these objects", "reason", err)
	w.replace(namespace, nil)
	w.mu.Lock()
	w.forbidden[namespace] = true
	w.mu.Unlock()
}

func (w *inNamespaces[T]) remove(object T) {
	w.mu.Lock()
	delete(w.all[object.GetNamespace()], object.GetName())
	w.mu.Unlock()
	w.changed(object.GetNamespace())
}

// replace takes all objects of a namespace, or of all.
func (w *inNamespaces[T]) replace(namespace string, list []T) {
	w.mu.Lock()
	w.forbidden[namespace] = false
	maps.DeleteFunc(w.all, func(of string, _ map[string]T) bool {
		return namespace == metav1.NamespaceAll || of == namespace
	})
	for _, object := range list {
		w.keep(object)
	}
	w.mu.Unlock()
	w.changed(namespace)
}

// of returns the objects of a namespace by name.
func (w *inNamespaces[T]) of(namespace string) []T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Values(w.all[namespace]), func(a, b T) int {
		return strings.Compare(a.GetName(), b.GetName())
	})
}

// quotaWatch holds the ResourceQuotas of the served namespaces: beyond them, the API server refuses pods. Without the
// right to read them, only refused pods show them. What pods of a namespace use changes with each of them, so more use
// is no change that matters: a cycle reads it anyway.
type quotaWatch struct {
	*inNamespaces[*corev1.ResourceQuota]
}

func newQuotas(
	client corev1client.ResourceQuotasGetter, namespaces []string, log *slog.Logger, changed func(string),
) quotaWatch {
	return quotaWatch{newInNamespaces("resourcequotas", &corev1.ResourceQuota{},
		func(namespace string) corev1client.ResourceQuotaInterface { return client.ResourceQuotas(namespace) },
		namespaces, log, freed, changed)}
}

// newLimits holds the LimitRanges of the served namespaces: what pods request by default, and which are refused.
func newLimits(
	client corev1client.LimitRangesGetter, namespaces []string, log *slog.Logger, changed func(string),
) *inNamespaces[*corev1.LimitRange] {
	return newInNamespaces("limitranges", &corev1.LimitRange{},
		func(namespace string) corev1client.LimitRangeInterface { return client.LimitRanges(namespace) },
		namespaces, log, func(_, _ *corev1.LimitRange) bool { return true }, changed)
}

// freed reports whether a quota allows something else than before, or less of it is used.
func freed(before, now *corev1.ResourceQuota) bool {
	for key, used := range before.Status.Used {
		if less := now.Status.Used[key]; less.Cmp(used) < 0 {
			return true
		}
	}
	same := func(a, b resource.Quantity) bool { return a.Equal(b) }
	return !maps.EqualFunc(before.Spec.Hard, now.Spec.Hard, same) ||
		decode.QuotaForAllPods(before) != decode.QuotaForAllPods(now)
}

// AddTo adds what the quotas of its namespace leave for the workers of a RayCluster.
func (w quotaWatch) AddTo(cluster *nodepool.Cluster) {
	for _, quota := range w.of(cluster.Key.Namespace) {
		if !decode.QuotaForAllPods(quota) {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
			if left, bounds := leftOf(quota, key, cluster); bounds {
				cluster.NamespaceQuotas = append(cluster.NamespaceQuotas, left)
			}
		}
	}
}

// leftOf returns what others leave of one resource of a quota; false if it bounds no group. A quota counts a pod from
// the moment it is admitted until it has ended, whether it runs or not.
func leftOf(
	quota *corev1.ResourceQuota, key corev1.ResourceName, cluster *nodepool.Cluster,
) (landing.Quota, bool) {
	takes := raydemand.Bundle{}
	for i := range cluster.Groups {
		if each := decode.TakesOfQuota(key, cluster.Groups[i].Pod.Requests); each > 0 {
			takes[cluster.Groups[i].Name] = each
		}
	}
	if len(takes) == 0 {
		return landing.Quota{}, false
	}
	hard, used := decode.Amount(quota.Spec.Hard[key]), decode.Amount(quota.Status.Used[key])
	for i := range cluster.Workers {
		if w := &cluster.Workers[i]; !w.Failed && !w.Terminating {
			used = used.Plus(-takes[w.Group])
		}
	}
	return landing.Quota{Name: "ResourceQuota " + quota.Name + ", less what others use,",
		Resource: strings.TrimPrefix(string(key), "requests."), Amount: max(hard.Plus(-max(used, 0)), 0),
		PodTakes: takes}, true
}
