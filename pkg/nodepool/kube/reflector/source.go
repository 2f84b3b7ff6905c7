package reflector

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// ForbiddenPause separates two attempts to read what is forbidden, so that a role that is granted later takes effect
// without a restart.
const ForbiddenPause = time.Minute

// Source lists and watches objects that a deployment may not have the right to read, such as nodes and Events.
type Source struct {
	Name  string
	Kind  runtime.Object
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// Forbidden reports that this process may not read the kind; it is nil for kinds that must be readable: such a
	// failure is like any other then. Absent reports that the kind does not exist; it is nil for kinds that always
	// exist. Served tells both apart where the API server forbids a kind that it does not have; it may be nil. Failed
	// reports any other error; without it, Logger gets the error.
	Forbidden, Absent, Failed func(error)
	Served                    func(context.Context) *bool
	Logger                    *slog.Logger
	// Pause separates two attempts after that; zero means ForbiddenPause.
	Pause time.Duration
}

// Client lists and watches objects of one kind, as the clients of client-go do. L is a list of them.
type Client[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Of reads the objects of a client that the selectors of only match.
func Of[L runtime.Object](
	name string, kind runtime.Object, client Client[L], only metav1.ListOptions, log *slog.Logger,
) Source {
	matching := func(options metav1.ListOptions) metav1.ListOptions {
		options.LabelSelector, options.FieldSelector = only.LabelSelector, only.FieldSelector
		return options
	}
	return Source{
		Name: name, Kind: kind, Logger: log,
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, matching(options))
		},
		Watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, matching(options))
		},
	}
}

// Into keeps the store up to date until ctx ends. A reflector retries for ever and logs each failure. If the objects
// are forbidden, which is a deployment's choice, Into stops the reflector and retries after a pause.
func (f Source) Into(ctx context.Context, store toolscache.ReflectorStore) {
	quiet := logr.NewContext(ctx, logr.Discard()) // Source reports failures itself
	for {
		attempt, stop := context.WithCancel(quiet)
		toolscache.NewReflectorWithOptions(f.source(stop), f.Kind, store, toolscache.ReflectorOptions{Name: f.Name}).
			RunWithContext(attempt)
		stop()
		if !Sleep(ctx, Jittered(cmp.Or(f.Pause, ForbiddenPause))) {
			return
		}
	}
}

// Each runs read for all of these at once, and returns when each has ended.
func Each[T any](all iter.Seq[T], read func(T)) {
	var reads sync.WaitGroup
	for one := range all {
		reads.Go(func() { read(one) })
	}
	reads.Wait()
}

// isAbsent reports whether the API server says that it does not serve the kind.
func (f Source) isAbsent(ctx context.Context) bool {
	if f.Served == nil {
		return false
	}
	served := f.Served(ctx)
	return served != nil && !*served
}

// source lists and watches, and calls stop if the API server forbids it.
func (f Source) source(stop func()) toolscache.ListerWatcher {
	heard := func(ctx context.Context, err error) {
		switch {
		case err == nil || ctx.Err() != nil:
		case f.Absent != nil && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && f.isAbsent(ctx)):
			f.Absent(err)
			stop()
		case apierrors.IsForbidden(err) && f.Forbidden != nil:
			f.Forbidden(err)
			stop()
		case f.Failed != nil:
			f.Failed(err)
		default:
			f.Logger.Debug("reading "+f.Name+" failed; retrying", "reason", err)
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
