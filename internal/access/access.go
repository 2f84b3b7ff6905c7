// Package access has what the REST API and those who authenticate and authorize its calls share: callers, rights and
// bearer tokens. It must not know what the rights are for, and must not import Kubernetes clients.
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
	// ErrUnauthenticated means that a call does not prove who makes it.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrForbidden means that the caller does not have the right.
	ErrForbidden = errors.New("forbidden")
	// ErrUnavailable means that the reviewer cannot be asked now. It never allows anything.
	ErrUnavailable = errors.New("rights cannot be reviewed now")
)

// ThrottledError means that a caller has to wait.
type ThrottledError struct {
	// After is how long to wait.
	After time.Duration
	// Why is a sentence without a full stop.
	Why string
}

// Error returns Why.
func (e *ThrottledError) Error() string { return e.Why }

// Caller is who makes a call, in the terms of Kubernetes' UserInfo.
type Caller struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Anybody is the caller if callers are not authenticated.
var Anybody = Caller{Name: "anonymous"}

// Right is something that a caller may be allowed to do, in the terms of Kubernetes' RBAC.
type Right struct {
	Verb string
	// Group and Resource name a kind of objects; Namespace and Name select some of them, empty for all.
	Group, Resource, Namespace, Name string
	// Path is set instead for a URL that is no object, for example /metrics.
	Path string
}

// String returns the right as text: get rayclusters.ray.io "llm" in namespace "ml".
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

// ForwardedHeader replaces Authorization if a proxy keeps that header for itself, as the service proxy of the API
// server does. Authorization has precedence.
const ForwardedHeader = "X-Heliostat-Authorization"

// Audience is the audience of tokens that are valid only for Heliostat, unless the server sets others.
const Audience = "heliostat"

// Bearer returns the token of the Authorization headers; given is false if there is no such header.
func Bearer(header http.Header) (token string, given bool, err error) {
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

// notOfToken reports whether a bearer token cannot contain r (RFC 6750, section 2.1).
func notOfToken(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("-._~+/=", r)
}
