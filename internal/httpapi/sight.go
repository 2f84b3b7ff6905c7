package httpapi

import (
	"sync"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// sight is which namespaces the caller of a stream may hear of. Rights are looked up when a namespace is first heard of, and all of them again
// with each renewal: neither what appears after a stream began nor what is taken away from its caller is missed.
type sight struct {
	server *server
	call   *gin.Context
	// unsure has a token while a namespace waits to be looked up.
	unsure chan struct{}

	mu sync.Mutex // guards what follows
	// everywhere: no namespace needs to be looked up. known are the answers of those that were; unheard wait to be.
	everywhere bool
	known      map[string]bool
	unheard    map[string]bool
}

// sightOf looks up what the caller of c may hear of now.
func (s *server) sightOf(c *gin.Context) (*sight, error) {
	v := &sight{server: s, call: c, unsure: make(chan struct{}, 1), known: map[string]bool{}, unheard: map[string]bool{}}
	_, err := v.renew()
	return v, err
}

// hears reports whether the caller may hear of a cluster. A namespace that was not looked up yet is noted for learn.
func (v *sight) hears(key nodepool.ClusterKey) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.everywhere {
		return true
	}
	allowed, known := v.known[key.Namespace]
	if !known {
		v.unheard[key.Namespace] = true
		select {
		case v.unsure <- struct{}{}:
		default:
		}
	}
	return allowed
}

// learn looks up the namespaces that were heard of since the last time, and returns those that the caller may see.
func (v *sight) learn() ([]string, error) {
	v.mu.Lock()
	namespaces := make([]string, 0, len(v.unheard))
	for namespace := range v.unheard {
		namespaces = append(namespaces, namespace)
	}
	clear(v.unheard)
	v.mu.Unlock()
	return v.ask(namespaces)
}

// renew looks up everything again, the namespaces of the fleet and those known, and returns the ones that the caller may see and could not before.
func (v *sight) renew() ([]string, error) {
	namespaces := namespacesOf(v.server.Fleet.Views())
	v.mu.Lock()
	for namespace := range v.known {
		namespaces = append(namespaces, namespace)
	}
	v.mu.Unlock()
	return v.ask(namespaces)
}

// ask looks up the namespaces and returns those that can be seen now and could not before.
func (v *sight) ask(namespaces []string) (gained []string, err error) {
	everywhere, seen, err := v.server.sees(v.call, namespaces)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for namespace, allowed := range seen {
		if allowed && !v.everywhere && !v.known[namespace] {
			gained = append(gained, namespace)
		}
		v.known[namespace] = allowed
	}
	v.everywhere = everywhere
	return gained, nil
}

// present are the events that a reader of namespaces begins with.
func (v *sight) present(namespaces []string, kinds ...string) []frame {
	wanted := map[string]bool{}
	for _, namespace := range namespaces {
		wanted[namespace] = true
	}
	var frames []frame
	if len(wanted) == 0 {
		return nil
	}
	for _, view := range v.server.Fleet.Views() {
		if wanted[view.Key.Namespace] {
			frames = append(frames, v.server.Hub.present(view, kinds...)...)
		}
	}
	return frames
}
