package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// tokenLifetime is the shortest lifetime that TokenRequest allows. A new token is requested renewBefore it expires.
const (
	tokenLifetime = 10 * time.Minute
	renewBefore   = time.Minute
)

// withToken sends a token with each call, in a header. The API server passes access.ForwardedHeader on, and consumes
// Authorization itself.
type withToken struct {
	token  func(context.Context) (string, error)
	header string
	next   http.RoundTripper
}

// RoundTrip sends the call with the token.
func (w withToken) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := w.token(request.Context())
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set(w.header, "Bearer "+token)
	return w.next.RoundTrip(request)
}

// tokenRequester requests tokens for one audience from the API server, for the ServiceAccount in the kubeconfig. They
// are valid only for Heliostat: anything with the Service's name can answer behind the API server's proxy, because the
// proxy checks no certificate. So the kubeconfig's own token, which is valid for the API server, is never sent there.
type tokenRequester struct {
	kubernetes kubernetes.Interface
	audience   string

	mu      sync.Mutex // guards what follows
	current string
	until   time.Time
}

func newTokenRequester(config *rest.Config, audience string) (*tokenRequester, error) {
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to request a token: %w", err)
	}
	return &tokenRequester{kubernetes: api, audience: audience}, nil
}

func (r *tokenRequester) token(ctx context.Context, now time.Time) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.until) {
		return r.current, nil
	}
	namespace, name, err := r.account(ctx)
	if err != nil {
		return "", err
	}
	seconds := int64(tokenLifetime / time.Second)
	asked := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{r.audience}, ExpirationSeconds: &seconds},
	}
	answer, err := r.kubernetes.CoreV1().
		ServiceAccounts(namespace).
		CreateToken(ctx, name, asked, metav1.CreateOptions{})
	switch {
	case err != nil:
		return "", fmt.Errorf("creating a token of ServiceAccount %s/%s for Heliostat alone: %w; set --token-file "+
			"to a file with the output of `kubectl -n %s create token %s --audience %s`, run by somebody who may "+
			"create it", namespace, name, err, namespace, name, r.audience)
	case answer.Status.Token == "":
		return "", fmt.Errorf("creating a token of ServiceAccount %s/%s: the API server returned none", namespace, name)
	}
	r.current, r.until = answer.Status.Token, answer.Status.ExpirationTimestamp.Add(-renewBefore)
	return r.current, nil
}

// errNoToken says why a kubeconfig is not enough.
var errNoToken = errors.New("the kubeconfig's user is not a ServiceAccount, so the command cannot create a token for " +
	"Heliostat alone, and it never sends the kubeconfig's own credentials; set --token-file, for example to a file " +
	"with the output of `kubectl create token NAME --audience heliostat`, or set --server")

// account returns the ServiceAccount that is the kubeconfig's user.
func (r *tokenRequester) account(ctx context.Context) (namespace, name string, err error) {
	who, err := r.kubernetes.AuthenticationV1().
		SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", "", fmt.Errorf("asking the API server who the kubeconfig's user is: %w; give --token-file, or "+
			"--server", err)
	}
	account, is := strings.CutPrefix(who.Status.UserInfo.Username, "system:serviceaccount:")
	namespace, name, whole := strings.Cut(account, ":")
	if !is || !whole {
		return "", "", errNoToken
	}
	return namespace, name, nil
}

// now returns a token that is valid now.
func (r *tokenRequester) now(ctx context.Context) (string, error) { return r.token(ctx, time.Now()) }

// tokenFile is a file with the caller's token.
type tokenFile struct {
	path string
	// named is the flag or the variable that names the file, for messages.
	named string
}

// now reads the file for each call, because a pod's token changes every hour.
func (f tokenFile) now(context.Context) (string, error) { return f.read() }

func (f tokenFile) read() (string, error) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", f.named, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("reading %s: %s holds no token", f.named, f.path)
	}
	return token, nil
}

// isLoopbackHost reports whether a host can only mean this machine.
func isLoopbackHost(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
