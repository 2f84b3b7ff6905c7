// Package access says who calls the REST API and what the caller may do. It decides neither: Kubernetes reviews tokens and
// rights, a certificate authority signs client certificates. It remembers answers for seconds and bounds how many strangers
// may ask for. Where nobody can answer, nobody is let in.
package access

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Errors that callers branch on.
var (
	// ErrUnauthenticated says that a call does not prove who makes it.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrForbidden says that the caller has no right to what it asks for.
	ErrForbidden = errors.New("forbidden")
	// ErrUnavailable says that whoever knows cannot be asked now. It is never a yes.
	ErrUnavailable = errors.New("rights cannot be reviewed now")
)

// ThrottledError says that a caller has to wait.
type ThrottledError struct {
	// After is how long.
	After time.Duration
	// Why is a sentence without a full stop.
	Why string
}

// Error is Why.
func (e *ThrottledError) Error() string { return e.Why }

// Caller is who calls, in the words of Kubernetes' UserInfo.
type Caller struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Anybody is the caller where nobody is asked who they are.
var Anybody = Caller{Name: "anonymous"}

// Right is something that a caller may be allowed to do, in the words of Kubernetes' RBAC.
type Right struct {
	Verb string
	// Group and Resource name a kind of objects; Namespace and Name say which, empty for all.
	Group, Resource, Namespace, Name string
	// Path is set instead for what is no object, for example /metrics.
	Path string
}

// String is the right as a person says it: get rayclusters.ray.io "llm" in namespace "ml".
func (r Right) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += fmt.Sprintf(" %q", r.Name)
	}
	if r.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", r.Namespace)
	}
	return text
}

// ForwardedHeader stands for Authorization where something on the way keeps that for itself, as the service proxy of the API
// server does. Authorization goes before it.
const ForwardedHeader = "X-Heliostat-Authorization"

// Audience is for whom a token is that is good for Heliostat alone, unless the server names others.
const Audience = "heliostat"

// bearer returns the token of the Authorization headers; false where there is no such header.
func bearer(header http.Header) (token string, given bool, err error) {
	values := header.Values("Authorization")
	if len(values) == 0 {
		values = header.Values(ForwardedHeader)
	}
	if len(values) == 0 {
		return "", false, nil
	}
	if len(values) > 1 {
		return "", true, fmt.Errorf("%w: there are %d Authorization headers", ErrUnauthenticated, len(values))
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsFunc(token, notOfToken) {
		return "", true, fmt.Errorf("%w: Authorization is not a bearer token", ErrUnauthenticated)
	}
	return token, true, nil
}

// notOfToken reports whether a bearer token cannot hold r (RFC 6750, section 2.1).
func notOfToken(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("-._~+/=", r)
}
