package relay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/httpapi/limits"
)

// maxList bounds the list of one shard.
const maxList = 256 << 20

// gatherLists answers a list of RayClusters with the lists of all shards.
func (r *Relay) gatherLists(c *gin.Context) {
	addresses, ok := r.others(c)
	if !ok || len(addresses) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), limits.WriteTimeout)
	defer cancel()
	answers := make([]partial, len(addresses))
	var calls sync.WaitGroup
	for i, address := range addresses {
		calls.Go(func() { answers[i] = r.list(ctx, c.Request, address) })
	}
	own := &capture{ResponseWriter: c.Writer, status: http.StatusOK}
	c.Writer = own
	c.Next()
	c.Writer = own.ResponseWriter
	calls.Wait()
	r.join(c, append([]partial{{own.status, own.text.Bytes(), nil}}, answers...))
}

// partial is the answer of one shard.
type partial struct {
	status int
	text   []byte
	err    error
}

// list asks one shard for its list.
func (r *Relay) list(ctx context.Context, call *http.Request, address string) partial {
	response, err := r.ask(ctx, call, address)
	if err != nil {
		return partial{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxList+1))
	if err == nil && len(text) > maxList {
		err = fmt.Errorf("the list of shard %s has more than %d bytes", address, maxList)
	}
	return partial{response.StatusCode, text, err}
}

// ask sends a call to another shard, in the name of the same caller.
func (r *Relay) ask(ctx context.Context, call *http.Request, address string) (*http.Response, error) {
	url := *call.URL
	url.Scheme, url.Host = r.scheme, address
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("calling shard %s: %w", address, err)
	}
	out.Host = call.Host
	for _, name := range []string{"Authorization", access.ForwardedHeader, "Accept", "Origin", "Traceparent"} {
		if values := call.Header.Values(name); len(values) > 0 {
			out.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	out.Header.Set(passedHeader, "1")
	response, err := r.transport.RoundTrip(out)
	if err != nil {
		return nil, fmt.Errorf("calling shard %s: %w", address, err)
	}
	return response, nil
}

// join writes one list, or the first answer that is none.
func (r *Relay) join(c *gin.Context, answers []partial) {
	var items []listed
	for _, a := range answers {
		if a.err != nil {
			r.Log.Warn("a shard did not answer a list", "error", a.err)
			r.unavailable(c, "a shard does not answer now, so the list would lack its RayClusters; try again")
			return
		}
		if a.status != http.StatusOK {
			c.Data(a.status, "application/problem+json", a.text)
			c.Abort()
			return
		}
		var list struct{ Items []listed }
		if err := json.Unmarshal(a.text, &list); err != nil {
			r.Answers.Fail(c, fmt.Errorf("reading the list of a shard: %w", err))
			return
		}
		items = append(items, list.Items...)
	}
	slices.SortFunc(items, func(a, b listed) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	// One that moves meanwhile may be in two lists.
	items = slices.CompactFunc(items, func(a, b listed) bool { return a.Namespace == b.Namespace && a.Name == b.Name })
	r.Answers.JSON(c, http.StatusOK, struct {
		Items []listed `json:"items"`
	}{append([]listed{}, items...)})
	c.Abort()
}

// listed is one RayCluster of a list. Everything but its name is passed on as it is.
type listed struct {
	Namespace, Name string
	text            json.RawMessage
}

// UnmarshalJSON keeps the text.
func (l *listed) UnmarshalJSON(text []byte) error {
	var key struct{ Namespace, Name string }
	if err := json.Unmarshal(text, &key); err != nil {
		return err
	}
	l.Namespace, l.Name, l.text = key.Namespace, key.Name, slices.Clone(text)
	return nil
}

// MarshalJSON writes the text.
func (l listed) MarshalJSON() ([]byte, error) { return l.text, nil }

// capture keeps an answer instead of sending it.
type capture struct {
	gin.ResponseWriter
	status int
	text   bytes.Buffer
}

func (w *capture) WriteHeader(status int) { w.status = status }

func (w *capture) WriteHeaderNow() {}

func (w *capture) Write(text []byte) (int, error) { return w.text.Write(text) }

func (w *capture) WriteString(text string) (int, error) { return w.text.WriteString(text) }

func (w *capture) Status() int { return w.status }

func (w *capture) Size() int { return w.text.Len() }

func (w *capture) Written() bool { return w.text.Len() > 0 }
