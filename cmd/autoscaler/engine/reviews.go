package engine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/access"
)

// Reviews per second of one process, and the burst. They bound the load that callers can cause on the API server.
// Further reviews wait, and fail at their deadline.
const (
	reviewsPerSecond = 200
	reviewsAtOnce    = 400
)

// reviews is an access.Reviewer.
type reviews struct {
	tokens    authenticationclient.TokenReviewInterface
	rights    authorizationclient.SubjectAccessReviewInterface
	audiences []string
}

// newReviews returns the reviewer that uses the API server of config. A token must be for one of the audiences; without
// audiences, for the API server or for access.Audience.
func newReviews(config *rest.Config, audiences []string) (*reviews, error) {
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
	return &reviews{tokens.TokenReviews(), rights.SubjectAccessReviews(), audiences}, nil
}

// ReviewToken returns the owner of a token; false if the API server rejects it, or if it is not for the audiences.
func (r *reviews) ReviewToken(ctx context.Context, token string) (access.Caller, bool, error) {
	audiences := r.audiences
	if len(audiences) == 0 && claims(token, access.Audience) {
		audiences = []string{access.Audience}
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	review, err := r.tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return access.Caller{}, false, fmt.Errorf("creating a TokenReview: %w", err)
	}
	status := review.Status
	if !status.Authenticated || !oneOf(status.Audiences, audiences) {
		return access.Caller{}, false, nil
	}
	caller := access.Caller{Name: status.User.Username, UID: status.User.UID, Groups: status.User.Groups}
	if len(status.User.Extra) > 0 {
		caller.Extra = make(map[string][]string, len(status.User.Extra))
		for key, values := range status.User.Extra {
			caller.Extra[key] = values
		}
	}
	return caller, true, nil
}

// oneOf reports whether a token with these audiences is valid for one of wanted. An authenticator that does not support
// audiences returns none; the tokens that it accepts are for the API server only.
func oneOf(audiences, wanted []string) bool {
	return len(wanted) == 0 || slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(wanted, a) })
}

// claims reports whether a token claims to be for an audience. Nothing is verified here: the claim only selects the
// audience that the API server verifies.
func claims(token, audience string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var several struct {
		Audiences []string `json:"aud"`
	}
	if json.Unmarshal(text, &several) == nil {
		return slices.Contains(several.Audiences, audience)
	}
	var single struct {
		Audience string `json:"aud"`
	}
	return json.Unmarshal(text, &single) == nil && single.Audience == audience
}

// ReviewRight reports whether a caller may do something.
func (r *reviews) ReviewRight(ctx context.Context, caller access.Caller, right access.Right) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{User: caller.Name, UID: caller.UID, Groups: caller.Groups}
	if len(caller.Extra) > 0 {
		spec.Extra = make(map[string]authorizationv1.ExtraValue, len(caller.Extra))
		for key, values := range caller.Extra {
			spec.Extra[key] = values
		}
	}
	if right.Path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: right.Path, Verb: right.Verb}
	} else {
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: right.Namespace, Verb: right.Verb, Group: right.Group, Resource: right.Resource,
			Name: right.Name,
		}
	}
	review, err := r.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("creating a SubjectAccessReview: %w", err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}
