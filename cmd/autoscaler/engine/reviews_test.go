package engine

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/access"
)

// apiServer answers every call with status and records the requests.
type apiServer struct {
	code   int
	status map[string]any
	path   string
	spec   map[string]any
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	var review map[string]any
	_ = json.Unmarshal(text, &review) // invalid JSON has no spec, which the test notices
	s.path = r.URL.Path
	s.spec, _ = review["spec"].(map[string]any)
	review["status"] = s.status
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(s.code)
	_ = json.NewEncoder(w).Encode(review)
}

func reviewsOf(t *testing.T, s *apiServer, audiences ...string) *reviews {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.ContentType = "application/json"
	r, err := newReviews(config, audiences)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestATokenIsReviewedForTheAudiencesThatAreAskedFor(t *testing.T) {
	user := map[string]any{"username": "system:serviceaccount:ml:driver", "uid": "7", "groups": []any{"system:authenticated"}, "extra": map[string]any{"pod": []any{"a"}}}
	alice := access.Caller{Name: "system:serviceaccount:ml:driver", UID: "7", Groups: []string{"system:authenticated"}, Extra: map[string][]string{"pod": {"a"}}}
	tests := map[string]struct {
		audiences []string
		status    map[string]any
		known     bool
	}{
		"for the API server": {nil, map[string]any{"authenticated": true, "user": user}, true},
		"not valid":          {nil, map[string]any{"authenticated": false, "user": user, "error": "expired"}, false},
		"for us":             {[]string{"heliostat", "other"}, map[string]any{"authenticated": true, "user": user, "audiences": []any{"heliostat"}}, true},
		"for another":        {[]string{"heliostat"}, map[string]any{"authenticated": true, "user": user, "audiences": []any{"vault"}}, false},
		"by an authenticator without any audiences": {[]string{"heliostat"}, map[string]any{"authenticated": true, "user": user}, false},
	}
	for name, test := range tests {
		s := &apiServer{code: http.StatusCreated, status: test.status}
		caller, known, err := reviewsOf(t, s, test.audiences...).ReviewToken(t.Context(), "abc")
		if err != nil || known != test.known {
			t.Errorf("%s: known %v, %v", name, known, err)
			continue
		}
		if diff := cmp.Diff(alice, caller); known && diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if s.path != "/apis/authentication.k8s.io/v1/tokenreviews" || s.spec["token"] != "abc" || len(test.audiences) > 0 && s.spec["audiences"] == nil {
			t.Errorf("%s: asked %s %v", name, s.path, s.spec)
		}
	}
}

// tokenFor returns an unsigned text that looks like a token of these audiences.
func tokenFor(audiences string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud": `+audiences+`}`)) + ".c2lnbmF0dXJl"
}

func TestATokenForHeliostatAloneCountsUnlessOthersAreNamed(t *testing.T) {
	user := map[string]any{"username": "system:serviceaccount:ml:driver"}
	ours := map[string]any{"authenticated": true, "user": user, "audiences": []any{"heliostat"}}
	for name, test := range map[string]struct {
		token string
		named []string
		reply map[string]any
		asked []any
		known bool
	}{
		"for Heliostat":                             {tokenFor(`["heliostat"]`), nil, ours, []any{"heliostat"}, true},
		"for Heliostat, a single one":               {tokenFor(`"heliostat"`), nil, ours, []any{"heliostat"}, true},
		"for Heliostat, which nobody signed":        {tokenFor(`["heliostat"]`), nil, map[string]any{"authenticated": false}, []any{"heliostat"}, false},
		"for Heliostat, by who knows no audiences":  {tokenFor(`["heliostat"]`), nil, map[string]any{"authenticated": true, "user": user}, []any{"heliostat"}, false},
		"for the API server":                        {tokenFor(`["https://kubernetes.default.svc"]`), nil, map[string]any{"authenticated": true, "user": user}, nil, true},
		"no JWT":                                    {"a.b", nil, map[string]any{"authenticated": true, "user": user}, nil, true},
		"broken":                                    {"a.!.c", nil, map[string]any{"authenticated": false}, nil, false},
		"for Heliostat, where another one is named": {tokenFor(`["heliostat"]`), []string{"other"}, ours, []any{"other"}, false},
	} {
		s := &apiServer{code: http.StatusCreated, status: test.reply}
		_, known, err := reviewsOf(t, s, test.named...).ReviewToken(t.Context(), test.token)
		asked, _ := s.spec["audiences"].([]any)
		if diff := cmp.Diff(test.asked, asked); err != nil || known != test.known || diff != "" {
			t.Errorf("%s: known %v, %v, asked for (-want +got):\n%s", name, known, err, diff)
		}
	}
}

func TestARightIsReviewedForTheCallerWithAllThatIsKnownOfIt(t *testing.T) {
	caller := access.Caller{Name: "alice", UID: "7", Groups: []string{"users"}, Extra: map[string][]string{"pod": {"a"}}}
	who := map[string]any{"user": "alice", "uid": "7", "groups": []any{"users"}, "extra": map[string]any{"pod": []any{"a"}}}
	for name, test := range map[string]struct {
		right  access.Right
		status map[string]any
		want   map[string]any
		may    bool
	}{
		"allowed": {
			access.Right{Verb: "request", Group: "ray.io", Resource: "rayclusters", Namespace: "ml", Name: "llm"}, map[string]any{"allowed": true},
			map[string]any{"resourceAttributes": map[string]any{"verb": "request", "group": "ray.io", "resource": "rayclusters", "namespace": "ml", "name": "llm"}}, true,
		},
		"not allowed": {access.Right{Verb: "list", Resource: "nodes"}, map[string]any{"allowed": false},
			map[string]any{"resourceAttributes": map[string]any{"verb": "list", "resource": "nodes"}}, false},
		"allowed by one and denied by another": {access.Right{Verb: "get", Path: "/metrics"}, map[string]any{"allowed": true, "denied": true},
			map[string]any{"nonResourceAttributes": map[string]any{"verb": "get", "path": "/metrics"}}, false},
	} {
		s := &apiServer{code: http.StatusCreated, status: test.status}
		may, err := reviewsOf(t, s).ReviewRight(t.Context(), caller, test.right)
		if err != nil || may != test.may {
			t.Errorf("%s: %v, %v", name, may, err)
		}
		for key, value := range who {
			test.want[key] = value
		}
		if diff := cmp.Diff(test.want, s.spec); diff != "" || s.path != "/apis/authorization.k8s.io/v1/subjectaccessreviews" {
			t.Errorf("%s: asked %s (-want +got):\n%s", name, s.path, diff)
		}
	}
}

func TestAnAPIServerThatDoesNotReviewIsAnErrorAndNeverAYes(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError, http.StatusBadGateway} {
		r := reviewsOf(t, &apiServer{code: code, status: map[string]any{"authenticated": true, "allowed": true, "user": map[string]any{"username": "alice"}}})
		if caller, known, err := r.ReviewToken(t.Context(), "abc"); err == nil || known {
			t.Errorf("%d: %v, known %v", code, caller, known)
		}
		if may, err := r.ReviewRight(t.Context(), access.Caller{Name: "alice"}, access.Right{Verb: "get", Path: "/metrics"}); err == nil || may {
			t.Errorf("%d: may %v", code, may)
		}
	}
}
