package kube

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// inNamespaces holds the objects of one kind that each API server has, by namespace. Without the right to read those of
// a namespace there are none.
type inNamespaces[T named] struct{ *attached.Objects[T, T] }

// named is a pointer to an object of Kubernetes.
type named interface {
	comparable
	runtime.Object
	attached.Named
}

// newInNamespaces takes the client of a kind in a namespace. same reports whether plans cannot change with an object
// that was another before; changed is called for a namespace.
func newInNamespaces[T named, L runtime.Object, C reflector.Client[L]](
	name string, kind T, client func(namespace string) C, namespaces []string, log *slog.Logger,
	same func(before, now T) bool, changed func(namespace string),
) inNamespaces[T] {
	var w inNamespaces[T]
	log = log.With("kind", name)
	w.Objects = attached.New(
		attached.Config{Namespaces: namespaces, Logger: log,
			Changed: func(of nodepool.ClusterKey) { changed(of.Namespace) }},
		attached.Kind[T, T]{
			Source: func(namespace string) reflector.Source {
				source := reflector.Of(name, kind, client(namespace), metav1.ListOptions{}, log)
				source.Forbidden = func(error) { w.Unread(namespace, "this process may not list and watch "+name) }
				return source
			},
			Read: func(object T) (attached.Object[T], bool) {
				of := nodepool.ClusterKey{Namespace: object.GetNamespace()} // it is for all RayClusters there
				return attached.Object[T]{Cluster: of, Value: object}, true
			},
			Same: same,
			Unread: func(namespace, why string) {
				log.Info("reading is forbidden, so plans do not know these objects", "namespace", namespace,
					"reason", why)
			},
		})
	return w
}

// of returns the objects of a namespace by name.
func (w inNamespaces[T]) of(namespace string) []T {
	objects, _ := w.Of(nodepool.ClusterKey{Namespace: namespace}, "")
	slices.SortFunc(objects, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return objects
}

// quotaWatch holds the ResourceQuotas of the served namespaces: beyond them, the API server refuses pods. Without the
// right to read them, only refused pods show them. What pods of a namespace use changes with each of them, so more use
// is no change that matters: a cycle reads it anyway.
type quotaWatch struct {
	inNamespaces[*corev1.ResourceQuota]
	// defaultsKnown reports whether the LimitRanges of a namespace are known: their defaults make pods state values.
	defaultsKnown func(namespace string) bool
}

func newQuotas(
	client corev1client.ResourceQuotasGetter, namespaces []string, log *slog.Logger, changed func(string),
) quotaWatch {
	return quotaWatch{inNamespaces: newInNamespaces("resourcequotas", &corev1.ResourceQuota{},
		func(namespace string) corev1client.ResourceQuotaInterface { return client.ResourceQuotas(namespace) },
		namespaces, log, allowsNoMore, changed)}
}

// newLimits holds the LimitRanges of the served namespaces: what pods request by default, and which are refused.
func newLimits(
	client corev1client.LimitRangesGetter, namespaces []string, log *slog.Logger, changed func(string),
) inNamespaces[*corev1.LimitRange] {
	return newInNamespaces("limitranges", &corev1.LimitRange{},
		func(namespace string) corev1client.LimitRangeInterface { return client.LimitRanges(namespace) },
		namespaces, log, func(before, now *corev1.LimitRange) bool {
			return equality.Semantic.DeepEqual(before.Spec, now.Spec)
		}, changed)
}

// allowsNoMore reports whether a quota allows the same as before, and no less of it is used.
func allowsNoMore(before, now *corev1.ResourceQuota) bool {
	for key, used := range before.Status.Used {
		if less := now.Status.Used[key]; less.Cmp(used) < 0 {
			return false
		}
	}
	same := func(a, b resource.Quantity) bool { return a.Equal(b) }
	return maps.EqualFunc(before.Spec.Hard, now.Spec.Hard, same) &&
		decode.QuotaForAllPods(before) == decode.QuotaForAllPods(now)
}

// known reports whether the objects of a namespace are known.
func (w inNamespaces[T]) known(namespace string) bool {
	_, state := w.Of(nodepool.ClusterKey{Namespace: namespace}, "")
	return state.Tried && state.Unknown == ""
}

// AddTo adds what the quotas of its namespace leave for the workers of a RayCluster.
func (w quotaWatch) AddTo(cluster *nodepool.Cluster) {
	namespace := cluster.Key.Namespace
	decode.AddQuotas(cluster, w.of(namespace), w.defaultsKnown(namespace), nil)
}
