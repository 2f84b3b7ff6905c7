package api

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// hangingOwned is a store that does not answer.
type hangingOwned struct{ *fakeOwned }

func (hangingOwned) Put(ctx context.Context, _ nodepool.OwnedRequest, _ func(*nodepool.OwnedRequest) error) (nodepool.OwnedRequest, bool, error) {
	<-ctx.Done()
	return nodepool.OwnedRequest{}, false, fmt.Errorf("client rate limiter Wait returned an error: %w", ctx.Err())
}

func TestUnfinishedCallsAreUnavailableAtShutdown(t *testing.T) {
	asks := func(*testing.T) io.Reader {
		return strings.NewReader(`{"bundles":[{"resources":{"CPU":1}}],"holdUntilDeleted":true}`)
	}
	neverComes := func(t *testing.T) io.Reader {
		body, rest := io.Pipe()
		t.Cleanup(func() { rest.Close() })
		return body
	}
	for name, c := range map[string]struct {
		method, path string
		body         func(*testing.T) io.Reader
		// follows means that the call is passed on to a leader that does not answer.
		follows bool
	}{
		"Kubernetes does not answer":         {method: http.MethodPut, path: llmPath + "/request_resources/one", body: asks},
		"the replica that decides is silent": {method: http.MethodPut, path: llmPath + "/request_resources/one", body: asks, follows: true},
		"the request still waits":            {method: http.MethodGet, path: llmPath + "/request_resources/kept?wait=60s", body: func(*testing.T) io.Reader { return nil }},
		"the body does not come":             {method: http.MethodPut, path: llmPath + "/request_resources/one", body: neverComes},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, url string, ours, theirs *tls.Config) {
				owned := hangingOwned{newFakeOwned()}
				kept := nodepool.OwnedRequest{}
				kept.Cluster, kept.ID = llm, "kept"
				owned.keep(kept)
				config := Config{Access: &fakeAccess{}, Fleet: fakeFleet{llm: busy()}, Requests: newFixture(t).requests, Owned: owned, TLS: ours}
				if c.follows {
					config.Leadership = &fakeLeadership{address: oldLeader, known: true}
				}
				silent := servingInMemory(t, func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // until then the server does not notice that the caller is gone
					<-r.Context().Done()
				})
				config.dialLeader = silent.Dial
				running, err := NewServer(config)
				if err != nil {
					t.Fatal(err)
				}
				w := newMemNetwork()
				w.Serve(t, running)

				begun, ended := time.Now(), make(chan error, 1)
				time.AfterFunc(time.Second, func() {
					grace, done := context.WithTimeout(context.Background(), FinishWithin+time.Second)
					defer done()
					ended <- running.Shutdown(grace)
				})
				request, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, c.body(t))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Authorization", "Bearer alice")
				request.Header.Set("Content-Type", "application/json")
				response, err := w.Transport(t, theirs).RoundTrip(request)
				if err != nil {
					t.Fatalf("no answer: %v", err)
				}
				text, err := io.ReadAll(response.Body)
				if err != nil {
					t.Error(err)
				}
				wantUnavailable(t, name, response, string(text), "the server is shutting down and did not finish this call")
				if took := time.Since(begun); took != time.Second+FinishWithin {
					t.Errorf("answered after %v, want it %v after the end began", took, FinishWithin)
				}
				if err := <-ended; err != nil {
					t.Errorf("the server ends: %v", err)
				}
			})
		})
	}
}
