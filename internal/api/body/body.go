// Package body reads the bodies of REST calls: at most 512 KiB of JSON, decoded and checked field by field. It must not
// know what a call does with what it reads, or what exists in the fleet.
package body

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"heliostat.dev/heliostat/internal/api/limits"
	"heliostat.dev/heliostat/internal/api/problem"
)

// MaxBody is the limit of a body in bytes; api/openapi.yaml repeats it.
const MaxBody = 512 << 10

// ReadJSON reads a JSON body. A call without a body needs no content type.
func ReadJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// A compressed body can have any size, so it is not read at all.
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		detail := fmt.Sprintf("Content-Encoding is %q; send the body uncompressed", problem.Shorten(encoding))
		return nil, &problem.Error{Kind: problem.MediaType, Detail: detail}
	}
	body, err := Read(w, r)
	if err != nil {
		return nil, err
	}
	if declared := r.Header.Get("Content-Type"); len(body) > 0 || declared != "" {
		// This check also refuses forms, which a foreign web page can send without asking first.
		if got, _, err := mime.ParseMediaType(declared); err != nil || got != "application/json" {
			detail := fmt.Sprintf("Content-Type is %q, want application/json", problem.Shorten(declared))
			return nil, &problem.Error{Kind: problem.MediaType, Detail: detail}
		}
	}
	return body, nil
}

// Read reads a body of any type.
func Read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	// A canceled call does not wait for the rest of its body.
	defer context.AfterFunc(r.Context(), func() { _ = connection.SetReadDeadline(time.Now()) })()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		detail := fmt.Sprintf("the body is larger than %d bytes", over.Limit)
		return nil, &problem.Error{Kind: problem.TooLarge, Detail: detail}
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close") // the start of the next call is unknown
		detail := fmt.Sprintf("the body did not arrive within %v", limits.ReadTimeout)
		return nil, &problem.Error{Kind: problem.SlowBody, Detail: detail}
	case err != nil:
		return nil, &problem.Error{Kind: problem.InvalidRequest, Detail: "the body ended early: " + err.Error()}
	}
	return body, nil
}
