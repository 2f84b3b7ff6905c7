package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/errgroup"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
)

// Access authenticates callers and reviews their rights. The errors are those of package access.
type Access interface {
	Authenticate(*http.Request) (access.Caller, error)
	Authorize(context.Context, access.Caller, access.Right) error
}

type guard struct {
	access  Access // nil if nobody is authenticated; then only calls to a loopback name are accepted
	callers *callerLimits
	origins *http.CrossOriginProtection
	answers *answers
	now     func() time.Time
}

// checkRoutes returns an error if one of the routes has no row in operations.
func checkRoutes(routes gin.RoutesInfo) error {
	for _, route := range routes {
		if _, known := operations[route.Method+" "+route.Path]; !known {
			return noRight(route.Method, route.Path)
		}
	}
	return nil
}

func noRight(method, route string) error {
	return fmt.Errorf("%s %s has no row in the table of operations", method, route)
}

// Operation returns the operation of c; its ID is empty if there is none.
func (g *guard) Operation(c *gin.Context) operation {
	return operations[c.Request.Method+" "+c.FullPath()]
}

// Host refuses other names than loopback while nobody is authenticated. Otherwise a web page whose name resolves to
// 127.0.0.1 (DNS rebinding) could call the server from the user's own browser.
func (g *guard) Host(c *gin.Context) {
	if g.access != nil {
		return
	}
	host := c.Request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !isLoopback(strings.Trim(host, "[]")) {
		detail := fmt.Sprintf("Host is %q; call this server by a loopback address or localhost", shorten(host))
		g.answers.Fail(c, &problem{Kind: kindForeignHost, Detail: detail})
	}
}

// isLoopback reports whether host can only mean this machine. An empty host means every address. It does not resolve
// names other than localhost: their meaning can change.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// Origin refuses writes that a web page of another origin makes a browser send: on loopback no credentials
// may be necessary.
func (g *guard) Origin(c *gin.Context) {
	if err := g.origins.Check(c.Request); err != nil {
		detail := "a web page of another origin sends this; only the page of this server may"
		g.answers.Fail(c, &problem{Kind: kindCrossOrigin, Detail: detail})
	}
}

// Caller runs the operation if it knows the caller, and the caller is within its rate and has the right that the
// contract requires. It looks at the call alone, so a refusal reveals nothing about what exists.
func (g *guard) Caller(c *gin.Context) {
	if c.FullPath() == "" {
		return // no such operation; the contract is public, so everybody gets that answer
	}
	operation, known := operations[c.Request.Method+" "+c.FullPath()]
	if !known {
		g.answers.Fail(c, noRight(c.Request.Method, c.FullPath()))
		return
	}
	if operation.Open {
		return
	}
	caller := access.Anybody
	if g.access != nil {
		var err error
		if caller, err = g.access.Authenticate(c.Request); err != nil {
			g.answers.Fail(c, err)
			return
		}
	}
	c.Set(callerKey, caller)
	leave, err := g.callers.Enter(caller.Name, g.now())
	if err != nil {
		g.answers.Fail(c, err)
		return
	}
	defer leave()
	if err := checkNames(c); err != nil {
		g.answers.Fail(c, err)
		return
	}
	if err := g.authorize(c, caller, operation); err != nil {
		g.answers.Fail(c, err)
		return
	}
	c.Next()
}

// Query refuses query parameters of /v1 that break the contract. Probes, metrics and the page accept any: load
// balancers, scrapers and links add their own.
func (g *guard) Query(c *gin.Context) {
	if c.Request.URL.RawQuery == "" || !strings.HasPrefix(c.FullPath(), "/v1/") {
		return
	}
	if err := g.Operation(c).CheckQuery(c.Request.URL.RawQuery); err != nil {
		g.answers.Fail(c, err)
	}
}

// namePattern is a DNS name; api/openapi.yaml repeats it.
var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// WantID describes the IDs of requests with owners.
const WantID = "a DNS name of at most 63 characters"

// IsID reports whether a text can be the ID of a request with an owner.
func IsID(text string) bool { return len(text) <= 63 && namePattern.MatchString(text) }

// checkNames refuses path parameters that cannot be the name of an object, before they become part of a Kubernetes
// path.
func checkNames(c *gin.Context) error {
	limits := []struct {
		param, expected string
		length          int
	}{
		{"namespace", "a DNS label of at most 63 characters", 63},
		{"name", "a DNS name of at most 253 characters", 253},
	}
	var faults []apiv1.FieldError
	for _, limit := range limits {
		value, given := c.Params.Get(limit.param)
		dotted := limit.param == "namespace" && slices.Contains([]byte(value), '.')
		if given && (len(value) > limit.length || dotted || !namePattern.MatchString(value)) {
			faults = append(
				faults, apiv1.FieldError{Field: limit.param, Value: shorten(value), Expected: limit.expected},
			)
		}
	}
	if len(faults) > 0 {
		return invalidFields(faults)
	}
	return nil
}

// authorize checks the right that an operation requires, on the object of the call. Handlers check operations per
// namespace.
func (g *guard) authorize(c *gin.Context, caller access.Caller, operation operation) error {
	if g.access == nil || operation.PerNamespace {
		return nil
	}
	right := operation.Right
	right.Namespace, right.Name = c.Param("namespace"), c.Param("name")
	return g.access.Authorize(c.Request.Context(), caller, right)
}

// Recheck authenticates and authorizes the caller of c again. Operations that run for long call it from time to time:
// the token may have been revoked since.
func (g *guard) Recheck(c *gin.Context) error {
	if g.access == nil {
		return nil
	}
	caller, err := g.access.Authenticate(c.Request)
	if err != nil {
		return err
	}
	return g.authorize(c, caller, g.Operation(c))
}

// May reports whether the caller of c has a right; a refusal is not an error.
func (g *guard) May(c *gin.Context, right access.Right) (bool, error) {
	if g.access == nil {
		return true, nil
	}
	err := g.access.Authorize(c.Request.Context(), callerOf(c), right)
	if errors.Is(err, access.ErrForbidden) {
		return false, nil
	}
	return err == nil, err
}

// maxReviews is the number of rights that one call asks for at the same time.
const maxReviews = 16

// visible returns the items in namespaces in which the caller has the right of the call. It reuses items.
func visible[T any](s *server, c *gin.Context, items []T, namespaceOf func(T) string) ([]T, error) {
	right := s.guard.Operation(c).Right
	if everywhere, err := s.guard.May(c, right); err != nil || everywhere {
		return items, err
	}
	var mu sync.Mutex // guards seen
	seen := map[string]bool{}
	for i := range items {
		seen[namespaceOf(items[i])] = false
	}
	var reviews errgroup.Group
	reviews.SetLimit(maxReviews)
	for namespace := range maps.Clone(seen) {
		reviews.Go(func() error {
			right := right
			right.Namespace = namespace
			may, err := s.guard.May(c, right)
			mu.Lock()
			defer mu.Unlock()
			seen[namespace] = may
			return err
		})
	}
	err := reviews.Wait()
	return slices.DeleteFunc(items, func(item T) bool { return !seen[namespaceOf(item)] }), err
}
