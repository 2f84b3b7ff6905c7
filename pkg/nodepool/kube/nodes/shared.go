package nodes

import "sync"

// shared keeps values that several RayClusters use, by what they were made of: a version that all of them share, and a
// key. It keeps those of the last version alone. Its zero value is ready for use, also by several goroutines.
type shared[V, K comparable, T any] struct {
	mu      sync.Mutex
	version V
	byKey   map[K]func() *T
}

// of returns the value of a version and key, and makes it unless someone has it. It must not be changed.
func (s *shared[V, K, T]) of(version V, key K, compute func() T) *T {
	s.mu.Lock()
	if s.byKey == nil || s.version != version {
		s.version, s.byKey = version, map[K]func() *T{}
	}
	value := s.byKey[key]
	if value == nil {
		value = sync.OnceValue(func() *T { made := compute(); return &made })
		s.byKey[key] = value
	}
	s.mu.Unlock()
	return value()
}
