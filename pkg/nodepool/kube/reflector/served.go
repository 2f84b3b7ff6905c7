package reflector

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// Served finds the kinds of an API group that a cluster may not have, in the best version that the API server serves.
type Served struct {
	Client    dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	Group     string
	// Versions are those that can be read, the best first.
	Versions []string
	// Resource must be served in the version, where the API server has a version without it; empty means any.
	Resource string
	Logger   *slog.Logger
}

// Version returns the best version that the API server serves; NotFound if it serves none.
func (s Served) Version() (string, error) {
	var missing error
	for _, version := range s.Versions {
		list, err := s.Discovery.ServerResourcesForGroupVersion(s.Group + "/" + version)
		switch {
		case apierrors.IsNotFound(err):
			missing = err
		case err != nil:
			return "", err
		case s.Resource == "" || slices.ContainsFunc(list.APIResources,
			func(r metav1.APIResource) bool { return r.Name == s.Resource }):
			return version, nil
		default:
			missing = apierrors.NewNotFound(schema.GroupResource{Group: s.Group, Resource: s.Resource}, "")
		}
	}
	return "", missing
}

// In returns the client of a resource in a namespace, or in all of them.
func (s Served) In(resource, namespace string) (dynamic.ResourceInterface, error) {
	version, err := s.Version()
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionResource{Group: s.Group, Version: version, Resource: resource}
	return s.Client.Resource(kind).Namespace(namespace), nil
}

// Source reads the objects of a resource with a label; an empty selector reads all. unread is called with the reason
// if they cannot be read.
func (s Served) Source(resource, namespace, selector string, unread func(why string)) Source {
	return Source{
		Name: resource + "." + s.Group, Kind: &unstructured.Unstructured{}, Logger: s.Logger,
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			c, err := s.In(resource, namespace)
			if err != nil {
				return nil, err
			}
			options.LabelSelector = selector
			return c.List(ctx, options)
		},
		Watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			c, err := s.In(resource, namespace)
			if err != nil {
				return nil, err
			}
			options.LabelSelector = selector
			return c.Watch(ctx, options)
		},
		Forbidden: func(error) { unread("this process may not list and watch " + resource + "." + s.Group) },
		Absent:    func(error) { unread("the API server does not serve " + resource + "." + s.Group) },
	}
}

// Serves returns a function that reports whether the API server has a resource; nil means that it did not answer.
func Serves(
	client discovery.ServerResourcesInterface, kind schema.GroupVersionResource,
) func(context.Context) *bool {
	served := Served{Discovery: client, Group: kind.Group, Versions: []string{kind.Version}, Resource: kind.Resource}
	return func(context.Context) *bool {
		if _, err := served.Version(); err == nil || apierrors.IsNotFound(err) {
			return new(err == nil)
		}
		return nil
	}
}

// Unserved reports whether an error is an answer of the API server that it cannot serve a call now.
func Unserved(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && (answer.Status().Code >= 500 || answer.Status().Code == 429)
}
