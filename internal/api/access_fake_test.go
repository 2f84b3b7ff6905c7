package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"heliostat.dev/heliostat/internal/access"
)

// fakeAccess accepts every token as the name of its caller. A nil allowed allows everything.
type fakeAccess struct {
	allowed func(access.Caller, access.Right) bool

	mu      sync.Mutex
	asked   []access.Right
	NextErr error
}

func (f *fakeAccess) Authenticate(r *http.Request) (access.Caller, error) {
	if err := f.fails(); err != nil {
		return access.Caller{}, err
	}
	name, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		return access.Caller{}, fmt.Errorf("%w: there is no bearer token", access.ErrUnauthenticated)
	}
	return access.Caller{Name: name}, nil
}

func (f *fakeAccess) Authorize(_ context.Context, caller access.Caller, right access.Right) error {
	f.mu.Lock()
	f.asked = append(f.asked, right)
	f.mu.Unlock()
	if f.allowed != nil && !f.allowed(caller, right) {
		return fmt.Errorf("%w: %q may not %s", access.ErrForbidden, caller.Name, right)
	}
	return nil
}

func (f *fakeAccess) fails() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.NextErr
	f.NextErr = nil
	return err
}

// take returns the rights that were asked for since the last call, sorted.
func (f *fakeAccess) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var asked []string
	for _, right := range f.asked {
		asked = append(asked, right.String())
	}
	f.asked = nil
	slices.Sort(asked)
	return asked
}
