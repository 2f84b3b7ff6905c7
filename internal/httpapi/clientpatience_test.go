package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAClientAsksAgainWhereTheServerCannotAnswerYet(t *testing.T) {
	for name, c := range map[string]struct {
		method, header, after string
		// busy is how often the server answers 503 first.
		busy   int
		status int
		calls  int
	}{
		"GET":                               {http.MethodGet, "", "0", 2, http.StatusOK, 3},
		"PUT":                               {http.MethodPut, "", "0", 2, http.StatusOK, 3},
		"PUT of what is known":              {http.MethodPut, "If-Match", "0", 2, http.StatusServiceUnavailable, 1},
		"DELETE":                            {http.MethodDelete, "", "0", 2, http.StatusServiceUnavailable, 1},
		"POST":                              {http.MethodPost, "", "0", 2, http.StatusServiceUnavailable, 1},
		"without a pause":                   {http.MethodGet, "", "", 2, http.StatusServiceUnavailable, 1},
		"a pause that is longer than worth": {http.MethodGet, "", "60", 2, http.StatusServiceUnavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != "what" {
					t.Errorf("call %d has the body %q, %v", calls, body, err)
				}
				if calls <= c.busy {
					if c.after != "" {
						w.Header().Set("Retry-After", c.after)
					}
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), c.method, server.URL, strings.NewReader("what"))
			if err != nil {
				t.Fatal(err)
			}
			if c.header != "" {
				request.Header.Set(c.header, `"1"`)
			}
			response, err := patient{http.DefaultTransport, time.Minute / 2}.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != c.status || calls != c.calls {
				t.Errorf("%s after %d calls, want %d after %d", response.Status, calls, c.status, c.calls)
			}
		})
	}
}
