package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"
)

// maxBody is the limit of a body in bytes; api/openapi.yaml repeats it.
const maxBody = 512 << 10

// readJSON reads a JSON body. A call without a body needs no content type.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// A compressed body can have any size, so it is not read at all.
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		detail := fmt.Sprintf("Content-Encoding is %q; send the body uncompressed", shorten(encoding))
		return nil, &problem{Kind: kindMediaType, Detail: detail}
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	if declared := r.Header.Get("Content-Type"); len(body) > 0 || declared != "" {
		// This check also refuses forms, which a foreign web page can send without asking first.
		if got, _, err := mime.ParseMediaType(declared); err != nil || got != "application/json" {
			detail := fmt.Sprintf("Content-Type is %q, want application/json", shorten(declared))
			return nil, &problem{Kind: kindMediaType, Detail: detail}
		}
	}
	return body, nil
}

// readBody reads a body of any type.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	// A canceled call does not wait for the rest of its body.
	defer context.AfterFunc(r.Context(), func() { _ = connection.SetReadDeadline(time.Now()) })()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		detail := fmt.Sprintf("the body is larger than %d bytes", over.Limit)
		return nil, &problem{Kind: kindTooLarge, Detail: detail}
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close") // the start of the next call is unknown
		detail := fmt.Sprintf("the body did not arrive within %v", readTimeout)
		return nil, &problem{Kind: kindSlowBody, Detail: detail}
	case err != nil:
		return nil, &problem{Kind: kindInvalidRequest, Detail: "the body ended early: " + err.Error()}
	}
	return body, nil
}
