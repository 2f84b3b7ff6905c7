package nodes

import (
	"sync"
	"weak"
)

// shared keeps values that several RayClusters use, by what they were made of: a version that all of them share, and a
// key. It keeps those of the last version alone, and each only while some RayCluster does. Its zero value is ready for
// use, also by several goroutines.
type shared[V, K comparable, T any] struct {
	mu      sync.Mutex
	version V
	byKey   map[K]weak.Pointer[made[T]]
}

// made is a value that is made once.
type made[T any] struct {
	once  sync.Once
	value T
}

// of returns the value of a version and key, and makes it unless someone has it. It must not be changed.
func (s *shared[V, K, T]) of(version V, key K, compute func() T) *T {
	m := s.entry(version, key)
	m.once.Do(func() { m.value = compute() })
	return &m.value
}

func (s *shared[V, K, T]) entry(version V, key K) *made[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil || s.version != version {
		s.version, s.byKey = version, map[K]weak.Pointer[made[T]]{}
	}
	if known := s.byKey[key].Value(); known != nil {
		return known
	}
	m := &made[T]{}
	s.byKey[key] = weak.Make(m)
	return m
}
