package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/access"
)

// lentLife is how long a lent token is good: the least that TokenRequest gives. A new one is asked for when lentReserve is left of it.
const (
	lentLife    = 10 * time.Minute
	lentReserve = time.Minute
)

// lending sends tokens that are good for Heliostat alone. What answers behind the API server's proxy is whatever has the Service's name, as
// the proxy checks no certificate; so the kubeconfig's own token, which opens the API server, never goes that way.
type lending struct {
	tokens *tokenLender
	next   http.RoundTripper
}

// RoundTrip sends the call with a lent token in the header that passes the API server, which keeps Authorization for itself.
func (l lending) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := l.tokens.token(request.Context(), time.Now())
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set(access.ForwardedHeader, "Bearer "+token)
	return l.next.RoundTrip(request)
}

// tokenLender asks the API server for tokens of one audience, in the name of the ServiceAccount that the kubeconfig's user is.
type tokenLender struct {
	kubernetes kubernetes.Interface
	audience   string

	mu    sync.Mutex // guards what follows
	lent  string
	until time.Time
}

func newTokenLender(config *rest.Config, audience string) (*tokenLender, error) {
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask the API server for a token: %w", err)
	}
	return &tokenLender{kubernetes: api, audience: audience}, nil
}

func (l *tokenLender) token(ctx context.Context, now time.Time) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.until) {
		return l.lent, nil
	}
	namespace, name, err := l.account(ctx)
	if err != nil {
		return "", err
	}
	seconds := int64(lentLife / time.Second)
	asked := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{l.audience}, ExpirationSeconds: &seconds}}
	answer, err := l.kubernetes.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, asked, metav1.CreateOptions{})
	switch {
	case err != nil:
		return "", fmt.Errorf("asking for a token of ServiceAccount %s/%s that is good for Heliostat alone: %w; "+
			"give --token-file with what `kubectl -n %s create token %s --audience %s` prints to who may create it", namespace, name, err, namespace, name, l.audience)
	case answer.Status.Token == "":
		return "", fmt.Errorf("asking for a token of ServiceAccount %s/%s: the API server answered without one", namespace, name)
	}
	l.lent, l.until = answer.Status.Token, answer.Status.ExpirationTimestamp.Add(-lentReserve)
	return l.lent, nil
}

// errNotLent says why a kubeconfig is not enough.
var errNotLent = errors.New("the kubeconfig's user is no ServiceAccount, so there is no token that is good for Heliostat alone, and what the " +
	"kubeconfig has opens the API server: it is not sent through the API server's proxy; give --token-file, for example with what " +
	"`kubectl create token NAME --audience heliostat` prints, or --server")

// account is the ServiceAccount that the kubeconfig's user is.
func (l *tokenLender) account(ctx context.Context) (namespace, name string, err error) {
	who, err := l.kubernetes.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", "", fmt.Errorf("asking the API server who the kubeconfig's user is: %w; give --token-file, or --server", err)
	}
	account, is := strings.CutPrefix(who.Status.UserInfo.Username, "system:serviceaccount:")
	namespace, name, whole := strings.Cut(account, ":")
	if !is || !whole {
		return "", "", errNotLent
	}
	return namespace, name, nil
}
