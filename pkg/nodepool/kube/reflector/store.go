package reflector

import (
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
)

// Store passes what a reflector reads to functions for one type of object. It keeps nothing itself. Objects of another
// type, which Strip does not turn into this one, are ignored.
type Store[T any] struct {
	// Put takes an object that changed, and Added one that was added; without Added, Put takes both.
	Put, Added func(object T)
	// Remove takes the last known state of an object that was deleted.
	Remove func(object T)
	// ReplaceAll takes a whole list with its resource version: the first list, or the one after a watch broke.
	ReplaceAll func(objects []T, version string)
	// Strip drops what nobody reads, as each object of a list arrives; nil keeps objects whole. If it turns objects
	// into T, all objects pass it.
	Strip toolscache.TransformFunc
}

// Transformer returns Strip.
func (s *Store[T]) Transformer() toolscache.TransformFunc { return s.Strip }

// Add takes an object that was added.
func (s *Store[T]) Add(object any) error {
	if typed, ok := s.typed(object); ok && s.Added != nil {
		s.Added(typed)
		return nil
	}
	return s.Update(object)
}

// Update takes an object that changed.
func (s *Store[T]) Update(object any) error {
	if typed, ok := s.typed(object); ok {
		s.Put(typed)
	}
	return nil
}

// Delete takes an object that was deleted.
func (s *Store[T]) Delete(object any) error {
	if typed, ok := s.typed(Deleted(object)); ok {
		s.Remove(typed)
	}
	return nil
}

// Replace takes a whole list.
func (s *Store[T]) Replace(list []any, version string) error {
	objects := make([]T, 0, len(list))
	for _, object := range list {
		if typed, ok := s.typed(object); ok {
			objects = append(objects, typed)
		}
	}
	s.ReplaceAll(objects, version)
	return nil
}

func (s *Store[T]) typed(object any) (typed T, ok bool) {
	if typed, ok = object.(T); !ok && s.Strip != nil {
		if stripped, err := s.Strip(object); err == nil {
			typed, ok = stripped.(T)
		}
	}
	return typed, ok
}

// Resync does nothing: the functions have seen every object.
func (s *Store[T]) Resync() error { return nil }

// Deleted returns the object in a tombstone, or the object itself.
func Deleted(object any) any {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return object
}

// Older reports whether resource version a is older than b. Versions that are not numbers have no order.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
