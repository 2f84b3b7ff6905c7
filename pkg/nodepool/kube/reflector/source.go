package reflector

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"heliostat.dev/heliostat/pkg/nodepool/kube/timing"
)

// ForbiddenPause separates two attempts to read what is forbidden: a role that is granted later takes effect without a
// restart.
const ForbiddenPause = time.Minute

// Source are objects that a deployment may be allowed to read or not: nodes, and Events.
type Source struct {
	Name  string
	Kind  runtime.Object
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// Forbidden and failed hear of what went wrong. absent hears that there is no such kind; nil where there always is.
	Forbidden, Failed func(error)
	Absent            func()
}

// Into keeps the store as the API server's objects are until ctx ends. A reflector tries again for ever and logs each failure;
// where the objects are forbidden, which is a deployment's choice and no fault, it is stopped instead and tried once in a
// while.
func (f Source) Into(ctx context.Context, store toolscache.ReflectorStore) {
	quiet := logr.NewContext(ctx, logr.Discard()) // failures are told by heard
	for {
		attempt, stop := context.WithCancel(quiet)
		toolscache.NewReflectorWithOptions(f.source(stop), f.Kind, store, toolscache.ReflectorOptions{Name: f.Name}).RunWithContext(attempt)
		stop()
		if !timing.Sleep(ctx, timing.Jittered(ForbiddenPause)) {
			return
		}
	}
}

// source lists and watches, and calls stop when the API server says that this is forbidden.
func (f Source) source(stop func()) toolscache.ListerWatcher {
	heard := func(ctx context.Context, err error) {
		switch {
		case err == nil || ctx.Err() != nil:
		case apierrors.IsForbidden(err):
			f.Forbidden(err)
			stop()
		case f.Absent != nil && apierrors.IsNotFound(err):
			f.Absent()
			stop()
		default:
			f.Failed(err)
		}
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := f.List(ctx, options)
			heard(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			stream, err := f.Watch(ctx, options)
			heard(ctx, err)
			return stream, err
		},
	}
}
