package kube

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// forbiddenPause separates two attempts to read nodes while that is forbidden: a role that is granted later takes effect
// without a restart.
const forbiddenPause = time.Minute

// nodeClient is what is needed to follow nodes.
type nodeClient interface {
	List(ctx context.Context, options metav1.ListOptions) (*corev1.NodeList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// read follows the nodes. A reflector tries again for ever and logs each failure; where nodes are forbidden, which is a
// deployment's choice and no fault, it is stopped instead and tried once in a while.
func (n *nodes) read(ctx context.Context) {
	quiet := logr.NewContext(ctx, logr.Discard()) // failures are told by heard
	for {
		attempt, stop := context.WithCancel(quiet)
		toolscache.NewReflectorWithOptions(n.source(stop), &corev1.Node{}, n, toolscache.ReflectorOptions{Name: "nodes"}).RunWithContext(attempt)
		stop()
		if !sleep(ctx, jittered(forbiddenPause)) {
			return
		}
	}
}

// source lists and watches, and calls stop when the API server says that this is forbidden.
func (n *nodes) source(stop func()) toolscache.ListerWatcher {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := n.client.List(ctx, options)
			n.heard(ctx, err, stop)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			stream, err := n.client.Watch(ctx, options)
			n.heard(ctx, err, stop)
			return stream, err
		},
	}
}

func (n *nodes) heard(ctx context.Context, err error, stop func()) {
	switch {
	case err == nil || ctx.Err() != nil:
	case apierrors.IsForbidden(err):
		n.forbid(err)
		stop()
	default:
		n.log.Debug("nodes are read again", "reason", err)
	}
}
