package api

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
	"heliostat.dev/heliostat/internal/api/apiv1"
)

// maxList bounds the list of one shard, and maxGathered how many lists are gathered at once: those of all shards are in
// memory until they are joined. Further calls wait.
const (
	maxList     = 64 << 20
	maxGathered = 4
)

// gatherLists answers a list of RayClusters with the lists of all shards.
func (r *relay) gatherLists(c *gin.Context) { gather(r, c, "list", joinedLists) }

// gather answers a call with what join makes of the answers of all shards; what names one in an error. With one shard,
// the call goes on here. If not all shards answer with what was asked, it writes the first answer that is something
// else.
func gather[T any](r *relay, c *gin.Context, what string, join func([]T) T) {
	addresses, ok := r.others(c)
	if !ok || len(addresses) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), writeTimeout)
	defer cancel()
	select {
	case r.gathering <- struct{}{}:
	case <-ctx.Done():
		r.unavailable(c, "too many lists are gathered from shards now; try again")
		return
	}
	release := sync.OnceFunc(func() { <-r.gathering })
	defer release()
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
	parts := make([]T, 1+len(answers))
	for i, a := range append([]partial{{own.status, own.text.Bytes(), nil}}, answers...) {
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
		if err := json.Unmarshal(a.text, &parts[i]); err != nil {
			r.answers.Fail(c, fmt.Errorf("reading the %s of a shard: %w", what, err))
			return
		}
	}
	all := join(parts)
	release()
	r.answers.JSON(c, http.StatusOK, all)
	c.Abort()
}

// partial is the answer of one shard.
type partial struct {
	status int
	text   []byte
	err    error
}

// list asks one shard for its list.
func (r *relay) list(ctx context.Context, call *http.Request, address string) partial {
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
func (r *relay) ask(ctx context.Context, call *http.Request, address string) (*http.Response, error) {
	url := *call.URL
	url.Scheme, url.Host = r.scheme, address
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("calling shard %s: %w", address, err)
	}
	out.Host = call.Host
	for _, name := range []string{"Authorization", access.ForwardedHeader, "Accept", "Origin"} {
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

// joinedLists joins the lists of shards to one, sorted by namespace and name.
func joinedLists(all []apiv1.ClusterList) apiv1.ClusterList {
	items := []apiv1.ClusterSummary{}
	for _, list := range all {
		items = append(items, list.Items...)
	}
	compare := func(a, b apiv1.ClusterSummary) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(items, compare)
	// One that moves meanwhile may be in two lists.
	items = slices.CompactFunc(items, func(a, b apiv1.ClusterSummary) bool { return compare(a, b) == 0 })
	return apiv1.ClusterList{Items: items}
}

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

// gatherCosts answers with the sum of the costs of all shards. An owner can have RayClusters in several shards.
func (r *relay) gatherCosts(c *gin.Context) { gather(r, c, "costs", joinedCosts) }

// joinedCosts adds up the costs of shards. All of them count since the latest of their times.
func joinedCosts(all []apiv1.Costs) apiv1.Costs {
	sum := all[0]
	for _, more := range all[1:] {
		if more.Since.After(sum.Since) {
			sum.Since = more.Since
		}
		sum.Items = append(sum.Items, more.Items...)
		sum.Idle = append(sum.Idle, more.Idle...)
	}
	sum.Items = summedCosts(sum.Items)
	slices.SortStableFunc(sum.Idle, func(a, b apiv1.CostIdle) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Cluster, b.Cluster))
	})
	return sum
}

// summedCosts sorts items, and adds up those of the same.
func summedCosts(items []apiv1.CostItem) []apiv1.CostItem {
	compare := func(a, b apiv1.CostItem) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Cluster, b.Cluster),
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Owner, b.Owner),
			cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Why, b.Why))
	}
	slices.SortStableFunc(items, compare)
	sums := []apiv1.CostItem{}
	for _, item := range items {
		if n := len(sums); n > 0 && compare(sums[n-1], item) == 0 {
			last := &sums[n-1]
			last.PodSeconds += item.PodSeconds
			last.GpuSeconds += item.GpuSeconds
			last.Cost += item.Cost
			last.UnpricedPodSeconds += item.UnpricedPodSeconds
			continue
		}
		sums = append(sums, item)
	}
	return sums
}
