package kube

import (
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// rayPods has the pods of RayClusters. A cache of controller-runtime would keep Pod objects, which take four times as
// much memory even when they are stripped, and each cycle would convert all pods of its RayCluster again.
type rayPods struct {
	*attached.Objects[*decode.Pod, *decode.Pod]
	client corev1client.PodsGetter
	log    *slog.Logger
	// failed is called with each error of a list or a watch.
	failed   func(error)
	selector string
}

// newRayPods prepares reading; Start begins it. only is the one RayCluster whose pods are read, nil for all.
func newRayPods(
	client corev1client.PodsGetter, c attached.Config, only *nodepool.ClusterKey, failed func(error),
) *rayPods {
	p := &rayPods{client: client, log: c.Logger, failed: failed, selector: decode.ClusterLabel}
	if only != nil {
		c.Namespaces, p.selector = []string{only.Namespace}, decode.ClusterLabel+"="+only.Name
	}
	p.Objects = attached.New(c,
		attached.Kind[*decode.Pod, *decode.Pod]{
			Source: p.source, Strip: keptPod, Same: (*decode.Pod).Same,
			Read: func(pod *decode.Pod) (attached.Object[*decode.Pod], bool) {
				return attached.Object[*decode.Pod]{Cluster: pod.RayCluster, Value: pod}, true
			},
		})
	return p
}

func (p *rayPods) source(namespace string) reflector.Source {
	source := reflector.Of("pods of RayClusters", &corev1.Pod{}, p.client.Pods(namespace),
		metav1.ListOptions{LabelSelector: p.selector}, p.log)
	source.Failed = func(err error) {
		if apierrors.IsInvalid(err) {
			return // an API server that does not stream lists; the reflector lists then
		}
		p.failed(fmt.Errorf("reading the pods of RayClusters: %w", err))
		p.log.Warn("reading the pods of RayClusters failed; retrying", "namespace", namespace, "error", err)
	}
	return source
}

// keptPod turns a Pod object into what is kept of it.
func keptPod(object any) (any, error) {
	if pod, whole := object.(*corev1.Pod); whole {
		return decode.PodOf(pod), nil
	}
	return object, nil
}

// of returns the pods of a RayCluster, in no order.
func (p *rayPods) of(key nodepool.ClusterKey) []*decode.Pod {
	pods, _ := p.Of(key, "")
	return pods
}
