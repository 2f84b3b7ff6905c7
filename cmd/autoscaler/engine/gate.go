package engine

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/access"
)

// TokenReviews per second of one process, and as many SubjectAccessReviews, and the burst. They bound the load that
// callers can cause on the API server, and so how many answers about tokens are remembered. Further reviews wait, and
// fail at their deadline.
const (
	reviewsPerSecond = 200
	reviewsAtOnce    = 400
)

// How long answers are remembered. A token that is revoked or a right that is removed still counts for trustFor; one
// that is granted counts after doubtFor.
const (
	trustFor = 10 * time.Second
	doubtFor = 3 * time.Second
	// reviewTimeout bounds one review.
	reviewTimeout = 5 * time.Second
)

// gate authenticates and authorizes callers as an extension API server does: by TokenReviews and SubjectAccessReviews,
// with the caches of k8s.io/apiserver. It is an api.Access.
type gate struct {
	tokens authenticator.Token
	rights authorizer.Authorizer
}

// newGate returns the gate that asks the API server of config. A token must be for one of the audiences; without
// audiences, for the API server or for access.Audience.
func newGate(config *rest.Config, audiences []string) (*gate, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.RateLimiter = reviewsPerSecond, reviewsAtOnce, nil
	tokens, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting for TokenReviews: %w", err)
	}
	rights, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting for SubjectAccessReviews: %w", err)
	}
	g := &gate{tokens: cache.New(tokenReviews{tokens.TokenReviews(), audiences}, false, trustFor, doubtFor)}
	g.rights, err = authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: rights, AllowCacheTTL: trustFor, DenyCacheTTL: doubtFor,
		WebhookRetryBackoff: &wait.Backoff{Steps: 1},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("preparing SubjectAccessReviews: %w", err)
	}
	return g, nil
}

// Authenticate returns who makes a call: the owner of its bearer token.
func (g *gate) Authenticate(r *http.Request) (access.Caller, error) {
	token, given, err := access.Bearer(r.Header)
	if err == nil && !given {
		err = errNoToken
	}
	if err != nil {
		return access.Caller{}, err
	}
	found, known, err := g.tokens.AuthenticateToken(r.Context(), token)
	switch {
	case err == nil && !known:
		err = errInvalidToken
	case err != nil && r.Context().Err() == nil:
		err = fmt.Errorf("%w: reviewing a token: %w", access.ErrUnavailable, err)
	}
	if err != nil {
		return access.Caller{}, err
	}
	who := found.User
	return access.Caller{Name: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: who.GetExtra()}, nil
}

// errNoToken says how callers send one.
var errNoToken = fmt.Errorf("%w: there is no bearer token: want the header Authorization: Bearer TOKEN; commands "+
	"send the token in --token-file or HELIOSTAT_TOKEN_FILE", access.ErrUnauthenticated)

// errInvalidToken says how to get a valid one.
var errInvalidToken = fmt.Errorf(
	"%w: the token is invalid: it has expired, or is for another server; `kubectl create token NAME "+
		"--audience "+access.Audience+"` makes one, unless --token-audiences of the server sets others",
	access.ErrUnauthenticated,
)

// Authorize returns nil if the caller has the right, else access.ErrForbidden, access.ErrUnavailable or the error of
// ctx.
func (g *gate) Authorize(ctx context.Context, caller access.Caller, right access.Right) error {
	bounded, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	decision, _, err := g.rights.Authorize(bounded, authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: caller.Name, UID: caller.UID, Groups: caller.Groups, Extra: caller.Extra},
		Verb: right.Verb, APIGroup: right.Group, Resource: right.Resource, Namespace: right.Namespace,
		Name: right.Name, Path: right.Path, ResourceRequest: right.Path == "",
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: reviewing a right: %w", access.ErrUnavailable, err)
	case decision != authorizer.DecisionAllow:
		return fmt.Errorf("%w: %q may not %s", access.ErrForbidden, caller.Name, right)
	}
	return nil
}

// tokenReviews reviews tokens. The library's own reviewer does not tell a token that the API server rejects from an API
// server that does not answer.
type tokenReviews struct {
	client    authenticationclient.TokenReviewInterface
	audiences []string
}

// AuthenticateToken returns the owner of a token; false if the API server rejects it, or if it is not for the
// audiences.
func (r tokenReviews) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	if len(r.audiences) > 0 {
		return r.review(ctx, token, r.audiences)
	}
	found, known, err := r.review(ctx, token, []string{access.Audience})
	if err == nil && !known {
		found, known, err = r.review(ctx, token, nil)
	}
	return found, known, err
}

// review asks whether a token is for one of the audiences; none means the API server's own.
func (r tokenReviews) review(
	ctx context.Context, token string, audiences []string,
) (*authenticator.Response, bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	review, err := r.client.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, false, fmt.Errorf("creating a TokenReview: %w", err)
	}
	// An authenticator that does not support audiences returns none; the tokens that it accepts are for the API server
	// only.
	status := review.Status
	ours := len(audiences) == 0 ||
		slices.ContainsFunc(status.Audiences, func(a string) bool { return slices.Contains(audiences, a) })
	if !status.Authenticated || !ours || status.User.Username == "" {
		return nil, false, nil
	}
	who := &user.DefaultInfo{Name: status.User.Username, UID: status.User.UID, Groups: status.User.Groups}
	if len(status.User.Extra) > 0 {
		who.Extra = make(map[string][]string, len(status.User.Extra))
		for key, values := range status.User.Extra {
			who.Extra[key] = values
		}
	}
	return &authenticator.Response{User: who}, true, nil
}
