package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"heliostat.dev/heliostat/internal/access"
)

// requesterOf asks a fake API server, of whose user the kubeconfig is, for tokens of ten minutes from now on, and
// counts them.
func requesterOf(user string, now time.Time) (lender *tokenRequester, tokens *int) {
	tokens = new(int)
	api := fake.NewClientset()
	api.PrependReactor("create", "selfsubjectreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{
			Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user}},
		}, nil
	})
	api.PrependReactor("create", "serviceaccounts", func(k8stesting.Action) (bool, runtime.Object, error) {
		*tokens++
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
			Token: "token", ExpirationTimestamp: metav1.NewTime(now.Add(tokenLifetime)),
		}}, nil
	})
	return &tokenRequester{kubernetes: api, audience: "heliostat"}, tokens
}

func TestATokenIsRequestedAgainBeforeItExpires(t *testing.T) {
	now := time.Now()
	lender, tokens := requesterOf("system:serviceaccount:ml:driver", now)
	for _, at := range []struct {
		after time.Duration
		given int
	}{{0, 1}, {8 * time.Minute, 1}, {9*time.Minute + time.Second, 2}} {
		if _, err := lender.token(t.Context(), now.Add(at.after)); err != nil || *tokens != at.given {
			t.Errorf("after %v %d tokens were asked for, want %d: %v", at.after, *tokens, at.given, err)
		}
	}
}

// A transport leaves the request as it is: a client that tries again sends the same one.
func TestATokenIsNotLeftInTheRequest(t *testing.T) {
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header.Get(access.ForwardedHeader) }))
	defer server.Close()
	request, err := http.NewRequest(http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (withToken{(&tokenRequester{current: "lent", until: time.Now().Add(time.Hour)}).now, access.ForwardedHeader, http.DefaultTransport}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if sent != "Bearer lent" || len(request.Header) > 0 {
		t.Errorf("sent %q, and the request has %v", sent, request.Header)
	}
}
