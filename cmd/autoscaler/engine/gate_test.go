package engine

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/access"
)

// apiServer answers every call with status, counts calls and records the last one.
type apiServer struct {
	code   int
	status map[string]any
	path   string
	spec   map[string]any
	calls  int
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review map[string]any
	_ = json.NewDecoder(r.Body).Decode(&review) // invalid JSON has no spec, which the test notices
	s.path, s.calls = r.URL.Path, s.calls+1
	s.spec, _ = review["spec"].(map[string]any)
	review["status"] = s.status
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(s.code)
	_ = json.NewEncoder(w).Encode(review)
}

func gateOf(t *testing.T, s *apiServer, audiences ...string) *gate {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.ContentType = "application/json"
	g, err := newGate(config, audiences)
	must(t, err)
	return g
}

// with returns a call with a token, or without one if it is empty.
func with(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func TestATokenCountsForTheAudiencesThatAreAskedFor(t *testing.T) {
	user := map[string]any{"username": "system:serviceaccount:ml:driver", "uid": "7", "groups": []any{"system:authenticated"}, "extra": map[string]any{"pod": []any{"a"}}}
	driver := access.Caller{Name: "system:serviceaccount:ml:driver", UID: "7", Groups: []string{"system:authenticated"}, Extra: map[string][]string{"pod": {"a"}}}
	answer := func(authenticated bool, audiences ...any) map[string]any {
		status := map[string]any{"authenticated": authenticated, "user": user, "error": "expired"}
		if len(audiences) > 0 {
			status["audiences"] = audiences
		}
		return status
	}
	for name, test := range map[string]struct {
		named []string
		reply map[string]any
		calls int
		known bool
	}{
		"for the API server":                    {nil, answer(true), 2, true},
		"for Heliostat":                         {nil, answer(true, "heliostat"), 1, true},
		"not valid":                             {nil, answer(false), 2, false},
		"of nobody":                             {nil, map[string]any{"authenticated": true}, 2, false},
		"for one that is named":                 {[]string{"heliostat", "other"}, answer(true, "heliostat"), 1, true},
		"for another":                           {[]string{"heliostat"}, answer(true, "vault"), 1, false},
		"by an authenticator without audiences": {[]string{"heliostat"}, answer(true), 1, false},
	} {
		s := &apiServer{code: http.StatusCreated, status: test.reply}
		g := gateOf(t, s, test.named...)
		for range 3 { // the answer is remembered
			caller, err := g.Authenticate(with("abc"))
			if test.known != (err == nil) || err != nil && !errors.Is(err, access.ErrUnauthenticated) {
				t.Errorf("%s: %v", name, err)
			}
			if diff := cmp.Diff(driver, caller); test.known && diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if s.spec["token"] != "abc" || s.path != "/apis/authentication.k8s.io/v1/tokenreviews" || s.calls != test.calls {
			t.Errorf("%s: asked %s %v, %d times; want %d", name, s.path, s.spec, s.calls, test.calls)
		}
	}
}

func TestCallsThatProveNobodyAreRefusedWithoutAReview(t *testing.T) {
	s := &apiServer{code: http.StatusCreated, status: map[string]any{"authenticated": true, "user": map[string]any{"username": "alice"}}}
	g := gateOf(t, s)
	for name, header := range map[string]http.Header{
		"nothing":                {},
		"another scheme":         {"Authorization": {"Basic YWxpY2U6YQ=="}},
		"no token":               {"Authorization": {"Bearer"}},
		"two headers":            {"Authorization": {"Bearer alices", "Bearer alices"}},
		"two tokens":             {"Authorization": {"Bearer alices bobs"}},
		"no bytes of a token":    {"Authorization": {"Bearer \xff\xfe"}},
		"a bad one, and another": {"Authorization": {"Basic x"}, access.ForwardedHeader: {"Bearer alices"}},
	} {
		r := with("")
		r.Header = header
		if caller, err := g.Authenticate(r); !errors.Is(err, access.ErrUnauthenticated) || s.calls != 0 {
			t.Errorf("%s: %v, %v, %d reviews", name, caller, err, s.calls)
		}
	}
	if _, err := g.Authenticate(with("")); err == nil || !strings.Contains(err.Error(), "--token-file") {
		t.Errorf("without a token: %v, want what a command lacks", err)
	}
	r := with("")
	r.Header.Set(access.ForwardedHeader, "bearer alices")
	if caller, err := g.Authenticate(r); err != nil || caller.Name != "alice" {
		t.Errorf("with the header that proxies pass on: %v, %v", caller, err)
	}
}

func TestARightIsReviewedForTheCallerWithAllThatIsKnownOfIt(t *testing.T) {
	caller := access.Caller{Name: "alice", UID: "7", Groups: []string{"users"}, Extra: map[string][]string{"pod": {"a"}}}
	for name, test := range map[string]struct {
		right      access.Right
		status     map[string]any
		kind, text string
		err        error
	}{
		"allowed": {access.Right{Verb: "request", Group: "ray.io", Resource: "rayclusters", Namespace: "ml", Name: "llm"}, map[string]any{"allowed": true},
			"resourceAttributes", `{"group":"ray.io","name":"llm","namespace":"ml","resource":"rayclusters","verb":"request"}`, nil},
		"not allowed": {access.Right{Verb: "list", Resource: "nodes"}, map[string]any{"allowed": false},
			"resourceAttributes", `{"resource":"nodes","verb":"list"}`, access.ErrForbidden},
		"denied": {access.Right{Verb: "get", Path: "/metrics"}, map[string]any{"denied": true},
			"nonResourceAttributes", `{"path":"/metrics","verb":"get"}`, access.ErrForbidden},
		"allowed by one and denied by another": {access.Right{Verb: "get", Path: "/metrics"}, map[string]any{"allowed": true, "denied": true},
			"nonResourceAttributes", `{"path":"/metrics","verb":"get"}`, access.ErrUnavailable},
	} {
		s := &apiServer{code: http.StatusCreated, status: test.status}
		g := gateOf(t, s)
		for range 3 {
			if err := g.Authorize(t.Context(), caller, test.right); !errors.Is(err, test.err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		asked, _ := json.Marshal(s.spec[test.kind])
		if string(asked) != test.text || s.spec["user"] != "alice" || s.spec["uid"] != "7" || s.spec["extra"] == nil || s.calls != 1 {
			t.Errorf("%s: asked %s %v, %d times", name, s.path, s.spec, s.calls)
		}
		other := caller
		other.Groups = []string{"others"}
		if _ = g.Authorize(t.Context(), other, test.right); s.calls != 2 {
			t.Errorf("%s: a caller of another group has the remembered answer", name)
		}
	}
}

func TestAnAPIServerThatDoesNotReviewIsAnErrorAndNeverAYes(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError, http.StatusBadGateway} {
		s := &apiServer{code: code, status: map[string]any{"authenticated": true, "allowed": true, "user": map[string]any{"username": "alice"}}}
		g := gateOf(t, s)
		if caller, err := g.Authenticate(with("abc")); !errors.Is(err, access.ErrUnavailable) || errors.Is(err, access.ErrUnauthenticated) {
			t.Errorf("%d: %v, %v", code, caller, err)
		}
		if err := g.Authorize(t.Context(), access.Caller{Name: "alice"}, access.Right{Verb: "get", Path: "/metrics"}); !errors.Is(err, access.ErrUnavailable) {
			t.Errorf("%d: %v", code, err)
		}
		s.code = http.StatusCreated
		if _, err := g.Authenticate(with("abc")); err != nil {
			t.Errorf("%d: the failure is remembered: %v", code, err)
		}
	}
}
