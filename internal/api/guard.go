package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
)

// Access authenticates callers and reviews their rights. The errors are those of package access.
type Access interface {
	Authenticate(*http.Request) (access.Caller, error)
	Authorize(context.Context, access.Caller, access.Right) error
}

// guard checks calls.
type guard struct {
	access     Access // nil if nobody is authenticated
	operations operations
	callers    *callerLimits
	origins    *http.CrossOriginProtection
	answers    *answers
	now        func() time.Time
}

// New returns a guard of the operations in the contract. Without access it authenticates nobody, and accepts only calls
// to a loopback name. perSecond limits the calls of each caller; 0 means no limit.
func newGuard(reviewer Access, perSecond float64, answers *answers, now func() time.Time) (*guard, error) {
	operations, err := allOperations()
	if err != nil {
		return nil, err
	}
	return &guard{
		access: reviewer, operations: operations, callers: newCallerLimits(perSecond),
		origins: http.NewCrossOriginProtection(), answers: answers, now: now,
	}, nil
}

// CallsUsed returns how much of its concurrent calls the busiest caller uses, from 0 to 1.
func (g *guard) CallsUsed() float64 { return g.callers.Used() }

// CheckRoutes returns an error if the contract lacks one of the routes.
func (g *guard) CheckRoutes(routes gin.RoutesInfo) error {
	for _, route := range routes {
		if _, known := g.operations.Of(route.Method, route.Path); !known {
			return noRight(route.Method, route.Path)
		}
	}
	return nil
}

func noRight(method, route string) error {
	return fmt.Errorf("%s %s has no x-required-right in the contract", method, route)
}

// Operation returns the operation of c; its ID is empty if there is none.
func (g *guard) Operation(c *gin.Context) operation {
	operation, _ := g.operations.Of(c.Request.Method, c.FullPath())
	return operation
}

// Header refuses long addresses and headers before anything reads them.
func (g *guard) Header(c *gin.Context) {
	if length := len(c.Request.RequestURI); length > maxURI {
		detail := fmt.Sprintf("the address has %d bytes; the limit is %d", length, maxURI)
		g.answers.Fail(c, &problem{Kind: kindURITooLong, Detail: detail})
		return
	}
	size := 0
	for name, values := range c.Request.Header {
		for _, value := range values {
			size += len(name) + len(": \r\n") + len(value)
		}
	}
	if size > maxHeader {
		detail := fmt.Sprintf("the header has %d bytes; the limit is %d", size, maxHeader)
		g.answers.Fail(c, &problem{Kind: kindHeaderTooLarge, Detail: detail})
	}
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

// Origin refuses writes that a web page of another origin makes a browser send: browsers add client certificates
// without asking, and on loopback no credentials may be necessary.
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
	operation, known := g.operations.Of(c.Request.Method, c.FullPath())
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
	setCaller(c, caller)
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
