package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// readBody reads a JSON body within the limit. Without a body there need not be a content type.
func readBody(c *gin.Context) ([]byte, error) {
	// What is packed can unpack to anything, so it is not read at all.
	if packed := c.GetHeader("Content-Encoding"); packed != "" && packed != "identity" {
		return nil, &problem{kind: mediaType, detail: fmt.Sprintf("Content-Encoding is %q; send the body as it is", shorten(packed))}
	}
	body, err := readAll(c)
	if err != nil {
		return nil, err
	}
	if declared := c.GetHeader("Content-Type"); len(body) > 0 || declared != "" {
		// Insisting on the type also keeps out forms that a foreign web page could send without asking first.
		if got, _, err := mime.ParseMediaType(declared); err != nil || got != "application/json" {
			return nil, &problem{kind: mediaType, detail: fmt.Sprintf("Content-Type is %q, want application/json", shorten(declared))}
		}
	}
	return body, nil
}

// readAll reads a body of any kind within the limit.
func readAll(c *gin.Context) ([]byte, error) {
	reading := http.NewResponseController(c.Writer)
	defer context.AfterFunc(c.Request.Context(), func() { _ = reading.SetReadDeadline(time.Now()) })() // a call that is given up waits for no body
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, &problem{kind: tooLarge, detail: fmt.Sprintf("the body is larger than %d bytes", over.Limit)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Header("Connection", "close") // nobody knows where the next call would begin
		return nil, &problem{kind: slowBody, detail: fmt.Sprintf("the body was not there within %v", readTimeout)}
	case err != nil:
		return nil, &problem{kind: invalidRequest, detail: "the body ended early: " + err.Error()}
	}
	return body, nil
}

// namePattern is a DNS name; api/openapi.yaml repeats it.
var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// checkNames refuses path parameters that cannot name an object, before they are put into a Kubernetes path.
func (s *server) checkNames(c *gin.Context) {
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
			faults = append(faults, apiv1.FieldError{Field: limit.param, Value: shorten(value), Expected: limit.expected})
		}
	}
	if len(faults) > 0 {
		s.fail(c, invalid(faults))
	}
}
