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
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// quotaWatch holds the ResourceQuotas of the served namespaces: beyond them, the API server refuses pods. Without the
// right to read them there are none, and only refused pods show them.
type quotaWatch struct {
	client     corev1client.ResourceQuotasGetter
	namespaces []string
	log        *slog.Logger
	// changed is called when a quota may allow more or less than before. What pods of a namespace use changes with each
	// of them, so more use is no such change: a cycle reads it anyway.
	changed func(namespace string)

	mu sync.Mutex
	// Guarded by mu. all has the quotas by namespace and name, forbidden the served namespaces that may not be read.
	all       map[string]map[string]*corev1.ResourceQuota
	forbidden map[string]bool
}

func newQuotas(
	client corev1client.ResourceQuotasGetter, namespaces []string, log *slog.Logger, changed func(string),
) *quotaWatch {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &quotaWatch{client: client, namespaces: namespaces, log: log, changed: changed,
		all: map[string]map[string]*corev1.ResourceQuota{}, forbidden: map[string]bool{}}
}

// Start reads until ctx ends.
func (w *quotaWatch) Start(ctx context.Context) error {
	var reads sync.WaitGroup
	for _, namespace := range w.namespaces {
		source := reflector.Of("resourcequotas", &corev1.ResourceQuota{}, w.client.ResourceQuotas(namespace),
			metav1.ListOptions{})
		source.Forbidden = func(err error) { w.forbid(namespace, err) }
		source.Failed = func(err error) { w.log.Debug("reading ResourceQuotas failed; retrying", "reason", err) }
		reads.Go(func() {
			source.Into(ctx, &reflector.Store[*corev1.ResourceQuota]{Put: w.put, Remove: w.remove,
				ReplaceAll: func(list []*corev1.ResourceQuota, _ string) { w.replace(namespace, list) }})
		})
	}
	reads.Wait()
	return nil
}

func (w *quotaWatch) put(quota *corev1.ResourceQuota) {
	w.mu.Lock()
	before := w.all[quota.Namespace][quota.Name]
	w.keep(quota)
	w.mu.Unlock()
	if before == nil || freed(before, quota) {
		w.changed(quota.Namespace)
	}
}

// keep stores a quota. The caller holds mu.
func (w *quotaWatch) keep(quota *corev1.ResourceQuota) {
	if w.all[quota.Namespace] == nil {
		w.all[quota.Namespace] = map[string]*corev1.ResourceQuota{}
	}
	w.all[quota.Namespace][quota.Name] = quota
}

// forbid forgets the quotas of a namespace, or of all, that this process may not read.
func (w *quotaWatch) forbid(namespace string, err error) {
	w.mu.Lock()
	before := w.forbidden[namespace]
	w.mu.Unlock()
	if before {
		return
	}
	w.log.Info("reading ResourceQuotas is forbidden, so plans do not know them", "reason", err)
	w.replace(namespace, nil)
	w.mu.Lock()
	w.forbidden[namespace] = true
	w.mu.Unlock()
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

func (w *quotaWatch) remove(quota *corev1.ResourceQuota) {
	w.mu.Lock()
	delete(w.all[quota.Namespace], quota.Name)
	w.mu.Unlock()
	w.changed(quota.Namespace)
}

// replace takes all quotas of a namespace, or of all.
func (w *quotaWatch) replace(namespace string, list []*corev1.ResourceQuota) {
	w.mu.Lock()
	w.forbidden[namespace] = false
	maps.DeleteFunc(w.all, func(of string, _ map[string]*corev1.ResourceQuota) bool {
		return namespace == metav1.NamespaceAll || of == namespace
	})
	for _, quota := range list {
		w.keep(quota)
	}
	w.mu.Unlock()
	w.changed(namespace)
}

// AddTo adds what the quotas of its namespace leave for the workers of a RayCluster.
func (w *quotaWatch) AddTo(cluster *nodepool.Cluster) {
	w.mu.Lock()
	quotas := slices.SortedFunc(maps.Values(w.all[cluster.Key.Namespace]), func(a, b *corev1.ResourceQuota) int {
		return strings.Compare(a.Name, b.Name)
	})
	w.mu.Unlock()
	for _, quota := range quotas {
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
