package api

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// as sends a call with a token, or without one if it is empty.
func (w *fixture) as(token, method, path string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader("{}"))
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return w.send(request)
}

// filled returns a path of the spec with values for its parameters.
func filled(path, name string) string {
	path = strings.NewReplacer("{namespace}", "ml", "{name}", name).Replace(path)
	return regexp.MustCompile(`\{(\w+)\}`).ReplaceAllString(path, "one")
}

// guarded calls visit with every operation that is not open.
func (s spec) guarded(visit func(path, method string, operation object)) {
	s.operations(func(path, method string, operation object) {
		if operation["x-required-right"] != "none" {
			visit(path, strings.ToUpper(method), operation)
		}
	})
}

// The contract tells callers which rights and parameters the table of the server demands.
func TestTheContractHasTheRightsAndParametersOfTheServer(t *testing.T) {
	s := loadSpec(t)
	seen := map[string]bool{}
	s.operations(func(path, method string, declared object) {
		route := strings.ToUpper(method) + " " + regexp.MustCompile(`\{(\w+)\}`).ReplaceAllString(path, ":$1")
		op, known := operations[route]
		seen[route] = known
		right := map[string]any{"verb": op.Right.Verb}
		if op.Right.Path != "" {
			right["path"] = op.Right.Path
		} else {
			right["resource"] = strings.TrimSuffix(op.Right.Resource+"."+op.Right.Group, ".")
		}
		if op.PerNamespace {
			right["perNamespace"] = true
		}
		want := map[string]any{"operationId": op.ID, "x-required-right": any(right)}
		if op.Open {
			want["x-required-right"] = "none"
		}
		got := map[string]any{"operationId": declared["operationId"], "x-required-right": declared["x-required-right"]}
		if right, is := got["x-required-right"].(object); is {
			got["x-required-right"] = map[string]any(right)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-server +contract):\n%s", route, diff)
		}
		if _, open := declared["security"]; open != op.Open {
			t.Errorf("%s: its security in the contract is %v", route, declared["security"])
		}
		served, promised := map[string]string{}, map[string]string{}
		const rules = "length %v to %v, pattern %v, enum %v"
		for name, rule := range op.query {
			served[name] = fmt.Sprintf(rules, rule.least, rule.most, rule.pattern, rule.oneOf)
		}
		parameters, _ := declared["parameters"].([]any)
		for _, each := range parameters {
			if parameter := s.at(each); parameter["in"] == "query" {
				schema := object{"minLength": 0, "maxLength": 0, "enum": []any{}}
				maps.Copy(schema, s.at(parameter, "schema"))
				promised[fmt.Sprint(parameter["name"])] = fmt.Sprintf(rules,
					schema["minLength"], schema["maxLength"], schema["pattern"], schema["enum"])
			}
		}
		if diff := cmp.Diff(served, promised); diff != "" {
			t.Errorf("the parameters of %s (-server +contract):\n%s", route, diff)
		}
	})
	if len(seen) != len(operations) {
		t.Errorf("the contract has %d of %d operations", len(seen), len(operations))
	}
	for route, op := range operations {
		method, path, _ := strings.Cut(route, " ")
		if writes := method != http.MethodGet && !strings.HasSuffix(path, "/plan"); writes != slices.Contains([]string{"request", "patch"}, op.Right.Verb) ||
			op.Open && strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, ofCluster) && op.Right.Resource != "rayclusters" {
			t.Errorf("%s needs %s", route, op.Right)
		}
	}
}

func TestEveryGuardedOperationChecksItsRightFirst(t *testing.T) {
	w, s := newFixture(t), loadSpec(t)
	deny := &fakeAccess{allowed: func(access.Caller, access.Right) bool { return false }}
	closed := newFixture(t, func(c *Config) { c.Access = deny })
	s.guarded(func(path, method string, operation object) {
		if got := closed.as("", method, filled(path, "llm")); got.Code != http.StatusUnauthorized || got.Header().Get("WWW-Authenticate") != `Bearer realm="heliostat"` {
			t.Errorf("%s %s without a token: %d, WWW-Authenticate %q", method, path, got.Code, got.Header().Get("WWW-Authenticate"))
		}
		if asked := deny.take(); asked != nil {
			t.Errorf("%s %s without a token asks for %q", method, path, asked)
		}
		if operation["x-required-right"].(object)["perNamespace"] == true {
			return // TestNoFleetOperationRevealsAForbiddenNamespace
		}
		there, notThere := closed.as("eve", method, filled(path, "llm")), closed.as("eve", method, filled(path, "xyz"))
		if there.Code != http.StatusForbidden || notThere.Code != http.StatusForbidden {
			t.Errorf("%s %s without the right: %d, and %d for what does not exist", method, path, there.Code, notThere.Code)
		}
		if a, b := there.Body.String(), strings.ReplaceAll(notThere.Body.String(), "xyz", "llm"); a != b {
			t.Errorf("%s %s reveals what exists:\n%s%s", method, path, a, b)
		}
		if asked := deny.take(); len(asked) != 2 {
			t.Errorf("%s %s asks for %q, want its right once a call", method, path, asked)
		}
		s.mustMatch("Problem", there.Body.Bytes())
	})
	if closed.requests.sets != 0 || closed.frozen.calls != 0 {
		t.Error("a forbidden caller has written something")
	}
	if got := w.call(http.MethodGet, "/v1/rayclusters", ""); got.Code != http.StatusOK {
		t.Errorf("without access: %d", got.Code)
	}
}

func TestOpenOperationsNeedNoCaller(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Access = &fakeAccess{NextErr: errors.New("was asked")} })
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/openapi.yaml": 200, "/": 404, "/nowhere": 404} {
		if got := w.as("", http.MethodGet, path); got.Code != want {
			t.Errorf("GET %s: %d, want %d", path, got.Code, want)
		}
	}
}

func TestAListShowsOnlyNamespacesThatTheCallerMayList(t *testing.T) {
	secret := nodepool.ClusterKey{Namespace: "secret", Name: "hidden"}
	may := func(namespaces ...string) *fakeAccess {
		return &fakeAccess{allowed: func(_ access.Caller, right access.Right) bool {
			return right.Verb == "list" && slices.Contains(namespaces, right.Namespace)
		}}
	}
	for name, test := range map[string]struct {
		access *fakeAccess
		want   []string
	}{
		"all of them": {may(""), []string{"ml/llm", "secret/hidden"}},
		"one of two":  {may("ml"), []string{"ml/llm"}},
		"none":        {may(), nil},
	} {
		w := newFixture(t, func(c *Config) { c.Access = test.access })
		w.fleet[secret] = View{Decision: &addon.Decision{Cluster: secret}}
		answer := w.as("alice", http.MethodGet, "/v1/rayclusters")
		list := readAnswer[apiv1.ClusterList](t, answer)
		var got []string
		for _, item := range list.Items {
			got = append(got, item.Namespace+"/"+item.Name)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || answer.Code != http.StatusOK {
			t.Errorf("%s: %d (-want +got):\n%s", name, answer.Code, diff)
		}
	}
	many := may("ml")
	w := newFixture(t, func(c *Config) { c.Access = many })
	for i := range 40 {
		for _, name := range []string{"a", "b", "c"} {
			key := nodepool.ClusterKey{Namespace: fmt.Sprintf("n%d", i), Name: name}
			w.fleet[key] = View{Decision: &addon.Decision{Cluster: key}}
		}
	}
	w.as("alice", http.MethodGet, "/v1/rayclusters")
	if asked := many.take(); len(asked) != 42 {
		t.Errorf("%d rights were asked for, want one for all and one for each of 41 namespaces", len(asked))
	}
}

// Fleet operations must not reveal a namespace that the caller may not list.
func TestNoFleetOperationRevealsAForbiddenNamespace(t *testing.T) {
	hidden := nodepool.ClusterKey{Namespace: "hidden-namespace", Name: "hidden-cluster"}
	only := &fakeAccess{allowed: func(_ access.Caller, right access.Right) bool { return right.Namespace == "ml" }}
	w := newFixture(t, func(c *Config) { c.Access, c.Costs = only, costlyAlso("minimum", hidden) })
	w.fleet[hidden] = View{Decision: &addon.Decision{Cluster: hidden, Err: "hidden-error"}}
	for _, route := range slices.Sorted(maps.Keys(operations)) {
		if !operations[route].PerNamespace {
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		answer := w.as("alice", method, path)
		if text := answer.Body.String(); strings.Contains(text, "hidden") {
			t.Errorf("%s: %s", route, text)
		}
		if asked := only.take(); len(asked) == 0 {
			t.Errorf("%s asks for no right", route)
		}
	}
}

func TestTheRightIsForTheClusterOfTheCall(t *testing.T) {
	all := &fakeAccess{}
	w := newFixture(t, func(c *Config) { c.Access = all })
	for call, want := range map[string]string{
		"GET " + llmPath:                         `get rayclusters.ray.io "llm" in namespace "ml"`,
		"POST " + llmPath + "/request_resources": `request rayclusters.ray.io "llm" in namespace "ml"`,
		"PUT " + llmPath + "/freeze":             `patch rayclusters.ray.io "llm" in namespace "ml"`,
		"PUT " + llmPath + "/manage":             `patch rayclusters.ray.io "llm" in namespace "ml"`,
		"DELETE " + llmPath + "/manage":          `patch rayclusters.ray.io "llm" in namespace "ml"`,
		"GET /v1/namespaces/ml/rayclusters":      `list rayclusters.ray.io in namespace "ml"`,
		"GET /metrics":                           `get /metrics`,
	} {
		method, path, _ := strings.Cut(call, " ")
		w.as("alice", method, path)
		asked := all.take()
		if len(asked) == 0 || !slices.Contains(asked, want) {
			t.Errorf("%s asks for %q, want %q", call, asked, want)
		}
	}
	if got := w.as("alice", http.MethodGet, "/v1/namespaces/ml/rayclusters/..%2f..%2fkube-system"); got.Code == http.StatusOK || len(all.take()) > 0 {
		t.Errorf("a path in a name: %d", got.Code)
	}
}

func TestAFailedReviewAdmitsNobody(t *testing.T) {
	var log bytes.Buffer
	fake := &fakeAccess{}
	w := newFixture(t, func(c *Config) { c.Access, c.Log = fake, slog.New(slog.NewTextHandler(&log, nil)) })
	for name, test := range map[string]struct {
		err        error
		status     int
		retryAfter string
	}{
		"the API server does not answer": {fmt.Errorf("%w: dial tcp 10.0.0.1:443: connection refused", access.ErrUnavailable), 503, "1"},
		"too many guesses":               {&access.ThrottledError{After: 2500 * time.Millisecond, Why: "too many"}, 429, "3"},
		"an unexpected error":            {errors.New("secret of the house"), 500, ""},
	} {
		fake.NextErr = test.err
		got := w.as("alice", http.MethodGet, llmPath)
		if got.Code != test.status || got.Header().Get("Retry-After") != test.retryAfter {
			t.Errorf("%s: %d, Retry-After %q", name, got.Code, got.Header().Get("Retry-After"))
		}
		if text := got.Body.String(); strings.Contains(text, "10.0.0.1") || strings.Contains(text, "secret") {
			t.Errorf("%s: the answer is %s", name, text)
		}
	}
	if !strings.Contains(log.String(), "10.0.0.1") || !strings.Contains(log.String(), "secret of the house") {
		t.Errorf("log:\n%s", log.String())
	}
}

func TestWebPagesOfOtherOriginsMayNotWrite(t *testing.T) {
	w := newFixture(t)
	for name, test := range map[string]struct {
		header map[string]string
		status int
	}{
		"a program":                   {nil, 204},
		"the page itself":             {map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8090"}, 204},
		"a page from elsewhere":       {map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, 403},
		"a page of another port":      {map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:3000"}, 403},
		"an old browser's, elsewhere": {map[string]string{"Origin": "https://evil.example"}, 403},
	} {
		request := httptest.NewRequest(http.MethodDelete, "http://127.0.0.1:8090"+llmPath+"/freeze", nil)
		for key, value := range test.header {
			request.Header.Set(key, value)
		}
		recorder := w.send(request)
		if recorder.Code != test.status {
			t.Errorf("%s: %d, want %d", name, recorder.Code, test.status)
		}
	}
}

func TestTheLogHasWritesAndNoTokens(t *testing.T) {
	var log bytes.Buffer
	w := newFixture(t, func(c *Config) {
		c.Access = &fakeAccess{allowed: func(caller access.Caller, _ access.Right) bool { return caller.Name == "alice" }}
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	w.as("alice", http.MethodPut, llmPath+"/freeze")
	w.as("eve", http.MethodPut, llmPath+"/freeze")
	for _, want := range []string{`caller=alice operation=freezeCluster namespace=ml name=llm status=204`, `caller=eve operation=freezeCluster namespace=ml name=llm status=403`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "Bearer") {
		t.Errorf("a token is in the log:\n%s", log.String())
	}
}

func TestAnswersHaveSecurityHeaders(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Access = &fakeAccess{} })
	want := map[string]string{
		"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
		"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
	}
	for _, answer := range []*httptest.ResponseRecorder{w.as("alice", "GET", llmPath), w.as("", "GET", llmPath), w.as("", "GET", "/nowhere"), w.as("", "GET", "/healthz")} {
		for key, value := range want {
			if got := answer.Header().Get(key); got != value {
				t.Errorf("%d: %s is %q, want %q", answer.Code, key, got, value)
			}
		}
		if answer.Header().Get("Access-Control-Allow-Origin") != "" || answer.Header().Get("Strict-Transport-Security") != "" {
			t.Errorf("headers %v", answer.Header())
		}
	}
	secure := httptest.NewRequest(http.MethodGet, "https://heliostat/healthz", nil)
	recorder := w.send(secure)
	if recorder.Header().Get("Strict-Transport-Security") == "" {
		t.Error("TLS without Strict-Transport-Security")
	}
}

func TestUnknownAndRepeatedParametersAreRefused(t *testing.T) {
	w := newFixture(t)
	for query, wants := range map[string]string{
		"":                    "",
		"?gruop=a100":         "gruop",
		"?group=a100&x=1":     "x",
		"?group=a&group=b":    "group",
		"?group=a100;pod=b":   "",
		"?group=%zz":          "",
		"?group=a100&%0a=odd": "\n",
	} {
		answer := w.call(http.MethodGet, llmPath+"/explain"+query, "")
		p := readAnswer[apiv1.Problem](t, answer)
		if answer.Code != http.StatusBadRequest || wants != "" && (len(p.Errors) != 1 || p.Errors[0].Field != wants) {
			t.Errorf("%q: %d, %+v", query, answer.Code, p)
		}
	}
	for _, path := range []string{"/v1/rayclusters?namespace=ml", llmPath + "?wait=1s", llmPath + "/request_resources?x"} {
		if answer := w.call(http.MethodGet, path, ""); answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "no query parameter") {
			t.Errorf("%s: %d, %s", path, answer.Code, answer.Body)
		}
	}
	if answer := w.call(http.MethodPost, llmPath+"/request_resources?dryRun=true", `{"num_cpus":1}`); answer.Code != http.StatusBadRequest || w.requests.sets != 0 {
		t.Errorf("a write: %d, written %d times", answer.Code, w.requests.sets)
	}
	if answer := w.call(http.MethodGet, llmPath+"/explain?group=a100", ""); answer.Code != http.StatusOK {
		t.Errorf("a parameter of the contract: %d, %s", answer.Code, answer.Body)
	}
	if answer := w.call(http.MethodGet, "/healthz?from=balancer", ""); answer.Code != http.StatusOK {
		t.Errorf("a probe: %d", answer.Code)
	}
}

func TestValuesOfParametersMustMatchTheContract(t *testing.T) {
	w := newFixture(t)
	long := strings.Repeat("ü", 254)
	for query, want := range map[string]apiv1.FieldError{
		"/v1/costs?namespace=ML":                         {Field: "namespace", Value: "ML", Expected: "text that matches ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
		"/v1/costs?namespace=" + strings.Repeat("m", 64): {Field: "namespace", Value: shorten(strings.Repeat("m", 64)), Expected: "at most 63 characters"},
		"/v1/costs?by=pod":                               {Field: "by", Value: "pod", Expected: "one of cluster, group, owner, cause"},
		llmPath + "/explain?group=" + long:               {Field: "group", Value: shorten(long), Expected: "at most 253 characters"},
	} {
		answer := w.call(http.MethodGet, query, "")
		p := readAnswer[apiv1.Problem](t, answer)
		if answer.Code != http.StatusBadRequest || len(p.Errors) != 1 || p.Errors[0] != want {
			t.Errorf("%.80s: %d, %+v, want %+v", query, answer.Code, p.Errors, want)
		}
	}
	if answer := w.call(http.MethodGet, "/v1/costs?namespace=ml&by=group", ""); answer.Code == http.StatusBadRequest {
		t.Errorf("values of the contract: %s", answer.Body)
	}
}

func TestConcurrentCallsAreLimitedPerCaller(t *testing.T) {
	p := newCallerLimits(0)
	var leave []func()
	for i := range maxCalls {
		done, err := p.Enter("alice", time.Time{})
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		leave = append(leave, done)
	}
	var slower *access.ThrottledError
	if _, err := p.Enter("alice", time.Time{}); !errors.As(err, &slower) {
		t.Errorf("one too many: %v", err)
	}
	if done, err := p.Enter("bob", time.Time{}); err != nil {
		t.Errorf("another caller: %v", err)
	} else {
		done()
	}
	for _, done := range leave {
		done()
	}
	if _, err := p.Enter("alice", time.Time{}); err != nil {
		t.Errorf("after all are answered: %v", err)
	}
}

// wiredServer starts a server of NewServer on a network in memory.
func wiredServer(t *testing.T, change func(*Config)) *memNetwork {
	t.Helper()
	w := newMemNetwork()
	config := Config{Access: &fakeAccess{}, Fleet: fakeFleet{}, Requests: newFixture(t).requests, Owned: noOwned{}}
	change(&config)
	running, err := NewServer(config)
	must(t, err)
	w.Serve(t, running)
	return w
}

// aliceGets makes a call with alice's token, which may return a stream.
func aliceGets(t *testing.T, through http.RoundTripper, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer alice")
	response, err := (&http.Client{Transport: through}).Do(request)
	must(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// bothWays runs a test in a synctest bubble twice: over HTTP/1.1, and over TLS with HTTP/2. The test gets the address
// and the TLS settings of both ends, which are nil without TLS.
func bothWays(t *testing.T, test func(t *testing.T, url string, ours, theirs *tls.Config)) {
	t.Run("in the clear", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, "http://127.0.0.1", nil, nil) })
	})
	t.Run("over TLS", func(t *testing.T) {
		ours, theirs := tlsOf(t) // outside the bubble, because it has a real listener
		synctest.Test(t, func(t *testing.T) {
			test(t, "https://127.0.0.1", ours, theirs)
		})
	})
}

// tlsOf returns the TLS settings of both ends for 127.0.0.1.
func tlsOf(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	pool := x509.NewCertPool()
	pool.AddCert(certified.Certificate())
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certified.TLS.Certificates},
		&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
}
