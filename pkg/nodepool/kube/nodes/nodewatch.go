package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// nodeClient is the calls that watching nodes needs.
type nodeClient interface {
	List(ctx context.Context, options metav1.ListOptions) (*corev1.NodeList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// read watches the nodes.
func (n *nodes) read(ctx context.Context) {
	reflector.Source{
		Name: "nodes", Kind: &corev1.Node{}, Watch: n.client.Watch, Forbidden: n.forbid,
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return n.client.List(ctx, options)
		},
		Failed: n.failed,
	}.Into(ctx, n.store())
}
