package access

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var getLLM = Right{Verb: "get", Group: "ray.io", Resource: "rayclusters", Namespace: "ml", Name: "llm"}

func TestATokenIsReviewedAndItsCallerRememberedForTenSeconds(t *testing.T) {
	w := newWorld(t)
	for range 3 { // at 0, 4 and 8 s
		caller, err := w.Authenticate(call("alices"))
		if diff := cmp.Diff(Caller{Name: "alice", UID: "1", Groups: []string{"users"}}, caller); err != nil || diff != "" {
			t.Fatalf("caller %v %s", err, diff)
		}
		w.pass(4 * time.Second)
	}
	if w.cluster.tokens != 1 {
		t.Errorf("%d reviews in 8 s, want 1", w.cluster.tokens)
	}
	w.cluster.change(func() { delete(w.cluster.callers, "alices") })
	w.pass(trustFor)
	if _, err := w.Authenticate(call("alices")); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a token that was revoked 10 s ago: %v", err)
	}
	w.cluster.change(func() { w.cluster.callers["alices"] = Caller{Name: "alice"} })
	if _, err := w.Authenticate(call("alices")); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a refusal is not remembered: %v", err)
	}
	w.pass(doubtFor)
	if _, err := w.Authenticate(call("alices")); err != nil {
		t.Errorf("a token that is good again, 3 s after a refusal: %v", err)
	}
}

func TestCallsThatProveNobodyAreRefusedWithoutAsking(t *testing.T) {
	w := newWorld(t)
	headers := map[string]http.Header{
		"nothing":                {},
		"another scheme":         {"Authorization": {"Basic YWxpY2U6YQ=="}},
		"no token":               {"Authorization": {"Bearer"}},
		"an empty token":         {"Authorization": {"Bearer  "}},
		"two headers":            {"Authorization": {"Bearer alices", "Bearer alices"}},
		"two tokens":             {"Authorization": {"Bearer alices bobs"}},
		"not a token":            {"Authorization": {"Bearer alice's"}},
		"no bytes of a token":    {"Authorization": {"Bearer \xff\xfe"}},
		"a bad one, and another": {"Authorization": {"Basic x"}, ForwardedHeader: {"Bearer alices"}},
	}
	for name, header := range headers {
		r := call("")
		r.Header = header
		if caller, err := w.Authenticate(r); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%s: %v, %v", name, caller, err)
		}
	}
	if w.cluster.tokens != 0 {
		t.Errorf("%d tokens were reviewed", w.cluster.tokens)
	}
}

func TestAHeaderStandsForAuthorizationWhereThatIsKeptOnTheWay(t *testing.T) {
	r := call("")
	r.Header.Set(ForwardedHeader, "bearer alices")
	if caller, err := newWorld(t).Authenticate(r); err != nil || caller.Name != "alice" {
		t.Errorf("%v, %v", caller, err)
	}
}

func TestWhereNobodyCanBeAskedNobodyIsLetIn(t *testing.T) {
	w := newWorld(t)
	w.cluster.change(func() { w.cluster.err = errors.New("connection refused") })
	if caller, err := w.Authenticate(call("alices")); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnauthenticated) {
		t.Errorf("%v, %v", caller, err)
	}
	if err := w.Authorize(t.Context(), Caller{Name: "alice"}, getLLM); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a right that nobody can review: %v", err)
	}
	w.cluster.change(func() { w.cluster.err = nil })
	if _, err := w.Authenticate(call("alices")); err != nil {
		t.Errorf("the failure is remembered: %v", err)
	}
	if err := w.Authorize(t.Context(), Caller{Name: "alice"}, getLLM); err != nil {
		t.Errorf("the failure is remembered: %v", err)
	}
}

func TestARightIsOfOneCallerWithItsGroupsAndOfOneObject(t *testing.T) {
	w := newWorld(t)
	alice := Caller{Name: "alice", Groups: []string{"users"}}
	if err := w.Authorize(t.Context(), alice, getLLM); err != nil {
		t.Fatal(err)
	}
	others := map[string]Right{"another verb": {Verb: "patch"}, "another name": {Name: "b"}, "another namespace": {Namespace: "dev"}, "all of them": {Name: " "}}
	for name, change := range others {
		right := getLLM
		right.Verb = or(change.Verb, right.Verb)
		right.Namespace = or(change.Namespace, right.Namespace)
		right.Name = or(change.Name, right.Name)
		if err := w.Authorize(t.Context(), alice, right); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := w.cluster.reviews
	for _, caller := range []Caller{{Name: "alice"}, {Name: "alice", Groups: []string{"users", "x"}}, {Name: "alice", UID: "2"}, {Name: "alice", Extra: map[string][]string{"a": {"b"}}}} {
		_ = w.Authorize(t.Context(), caller, getLLM)
	}
	if got := w.cluster.reviews - before; got != 4 {
		t.Errorf("%d reviews of 4 callers who differ", got)
	}
	before = w.cluster.reviews
	for range 5 {
		_ = w.Authorize(t.Context(), alice, getLLM)
	}
	if w.cluster.reviews != before {
		t.Error("a right that was just given is reviewed again")
	}
	w.cluster.change(func() { w.cluster.allowed = nil })
	w.pass(trustFor)
	if err := w.Authorize(t.Context(), alice, getLLM); !errors.Is(err, ErrForbidden) {
		t.Errorf("a right that was taken away 10 s ago: %v", err)
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func TestEqualQuestionsAtTheSameTimeAreAskedOnce(t *testing.T) {
	w := newWorld(t)
	w.cluster.hold = make(chan struct{})
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			if _, err := w.Authenticate(call("alices")); err != nil {
				t.Error(err)
			}
		})
	}
	// A caller whose request ends does not wait, and gets no answer.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Authenticate(call("alices").WithContext(gone)); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that has ended: %v", err)
	}
	close(w.cluster.hold)
	callers.Wait()
	if w.cluster.tokens != 1 {
		t.Errorf("%d reviews of one token", w.cluster.tokens)
	}
}

func TestTheEndOfACallEndsNoReviewThatOthersMayWaitFor(t *testing.T) {
	w := newWorld(t)
	w.cluster.hold, w.cluster.asked = make(chan struct{}), make(chan context.Context, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.Authenticate(call("alices").WithContext(ctx))
		ended <- err
	}()
	review := <-w.cluster.asked
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call that ended: %v", err)
	}
	if err := review.Err(); err != nil {
		t.Errorf("the review ended with it: %v", err)
	}
	if _, bounded := review.Deadline(); !bounded {
		t.Error("the review has no deadline")
	}
	close(w.cluster.hold)
}

func TestAnAddressMayGuessOnlySoManyTokens(t *testing.T) {
	w := newWorld(t)
	guess := func(i int, address string) error {
		r := call(fmt.Sprintf("guess-%d", i))
		r.RemoteAddr = address
		_, err := w.Authenticate(r)
		return err
	}
	for i := range failuresAtOnce {
		if err := guess(i, "192.0.2.1:1"); !errors.Is(err, ErrUnauthenticated) {
			t.Fatalf("guess %d: %v", i, err)
		}
	}
	var slower *ThrottledError
	if err := guess(1000, "192.0.2.1:2"); !errors.As(err, &slower) || slower.After <= 0 || slower.After > time.Second {
		t.Errorf("one guess too many: %v", err)
	}
	if err := guess(1001, "192.0.2.2:1"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("another address: %v", err)
	}
	w.pass(time.Second)
	for i := range failuresPerSec {
		if err := guess(2000+i, "192.0.2.1:1"); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("guess %d a second later: %v", i, err)
		}
	}
	if err := guess(3000, "192.0.2.1:1"); !errors.As(err, &slower) {
		t.Errorf("one too many in that second: %v", err)
	}
	if w.cluster.tokens != failuresAtOnce+1+failuresPerSec {
		t.Errorf("%d tokens were reviewed", w.cluster.tokens)
	}
}

func TestGoodTokensOfAnAddressAreNotCounted(t *testing.T) {
	w := newWorld(t)
	for i := range 3 * failuresAtOnce {
		token := fmt.Sprintf("good-%d", i)
		w.cluster.change(func() { w.cluster.callers[token] = Caller{Name: token} })
		if _, err := w.Authenticate(call(token)); err != nil {
			t.Fatalf("token %d: %v", i, err)
		}
	}
}

func TestNeighboursOfAnAddressShareWhatTheyMayGuess(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:0:1:a::1]:80": "2001:db8:0:1::/64",
		"[2001:db8:0:1:b::2]:443": "2001:db8:0:1::/64", "[fe80::1%eth0]:1": "fe80::/64", "@": "@",
	} {
		if got := network(remote); got != want {
			t.Errorf("%s is of %s, want %s", remote, got, want)
		}
	}
}

func TestAClientCertificateNamesCallerAndGroups(t *testing.T) {
	root := newAuthority(t, nil)
	between := newAuthority(t, root)
	unverified := newAuthority(t, nil)
	authorities := root.pool()
	w := newWorld(t, func(c *Config) { c.ClientCAs = func() *x509.CertPool { return authorities } })

	want := Caller{Name: "alice", Groups: []string{"ops", "users", "system:authenticated"}} // DER sorts sets
	for name, chain := range map[string][]*x509.Certificate{
		"signed by the authority":   {root.client("alice", "users", "ops")},
		"signed by one in between":  {between.client("alice", "users", "ops"), between.certificate},
		"with more than is of need": {root.client("alice", "users", "ops"), unverified.certificate},
	} {
		if caller, err := w.Authenticate(showing(call(""), chain...)); err != nil || !cmp.Equal(caller, want) {
			t.Errorf("%s: %+v, %v", name, caller, err)
		}
	}
	server, _ := sign(t, root, &x509.Certificate{Subject: pkix.Name{CommonName: "alice"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	for name, chain := range map[string][]*x509.Certificate{
		"of a unverified":                          {unverified.client("alice")},
		"of a unverified, with the true authority": {unverified.client("alice"), root.certificate},
		"without the one in between":               {between.client("alice")},
		"of a server":                              {server},
		"without a name":                           {root.client("", "users")},
		"the authority itself":                     {unverified.certificate},
	} {
		if caller, err := w.Authenticate(showing(call(""), chain...)); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%s: %+v, %v", name, caller, err)
		}
	}

	held := root.client("alice")
	w.pass(2 * time.Hour)
	if _, err := w.Authenticate(showing(call(""), held)); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("it expired on an open connection: %v", err)
	}
	w.pass(-2 * time.Hour)
	authorities = unverified.pool()
	if _, err := w.Authenticate(showing(call(""), held)); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("its authority was taken away: %v", err)
	}
	if w.cluster.tokens != 0 {
		t.Error("the API server was asked about a certificate")
	}
}

func TestATokenGoesBeforeACertificateAndAWrongOneIsNotMadeGood(t *testing.T) {
	root := newAuthority(t, nil)
	w := newWorld(t, func(c *Config) { c.ClientCAs = root.pool })
	proxy := root.client("proxy", "system:masters")
	if caller, err := w.Authenticate(showing(call("alices"), proxy)); err != nil || caller.Name != "alice" {
		t.Errorf("a proxy that passes on a token speaks for %q, %v", caller.Name, err)
	}
	if caller, err := w.Authenticate(showing(call("nobodys"), proxy)); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("with a wrong token it is %q, %v", caller.Name, err)
	}
	if _, err := newWorld(t).Authenticate(showing(call(""), proxy)); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a certificate where there are no authorities: %v", err)
	}
}

func TestRightsReadAsPeopleSayThem(t *testing.T) {
	for want, right := range map[string]Right{
		`get rayclusters.ray.io "llm" in namespace "ml"`: getLLM,
		`list nodes`:   {Verb: "list", Resource: "nodes"},
		`get /metrics`: {Verb: "get", Path: "/metrics"},
	} {
		if got := right.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestGuessesFromAnAddressDoNotKeepATokenOutThatWasGoodLately(t *testing.T) {
	w := newWorld(t)
	w.cluster.change(func() { w.cluster.callers["newcomers"] = Caller{Name: "carol"} })
	if _, err := w.Authenticate(call("alices")); err != nil {
		t.Fatal(err)
	}
	guess := func() {
		for i := range failuresAtOnce {
			_, _ = w.Authenticate(call(fmt.Sprintf("guess%d", i)))
		}
	}
	w.pass(trustFor)
	guess()
	if caller, err := w.Authenticate(call("alices")); err != nil || caller.Name != "alice" {
		t.Errorf("a token that was good 10 s ago: %v, %v", caller, err)
	}
	var slower *ThrottledError
	if _, err := w.Authenticate(call("newcomers")); !errors.As(err, &slower) {
		t.Errorf("a token that nobody has shown before passes among guesses: %v", err)
	}
	w.cluster.change(func() { delete(w.cluster.callers, "alices") })
	w.pass(trustFor)
	if _, err := w.Authenticate(call("alices")); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a token that was revoked: %v", err)
	}
	w.pass(doubtFor)
	guess()
	if _, err := w.Authenticate(call("alices")); !errors.As(err, &slower) {
		t.Errorf("a token that was revoked passes among guesses: %v", err)
	}
}

func TestATokenThatWasGoodLongAgoIsAStrangers(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Authenticate(call("alices")); err != nil {
		t.Fatal(err)
	}
	w.pass(trustFor + knownFor)
	for i := range failuresAtOnce {
		_, _ = w.Authenticate(call(fmt.Sprintf("guess%d", i)))
	}
	var slower *ThrottledError
	if _, err := w.Authenticate(call("alices")); !errors.As(err, &slower) {
		t.Errorf("it passes among guesses: %v", err)
	}
}
