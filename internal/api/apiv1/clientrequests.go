package apiv1

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Requests lists the requests of a cluster, the plain one first. For the zero key it lists the requests with owners of
// all clusters.
func (c *Client) Requests(ctx context.Context, key nodepool.ClusterKey) ([]OwnedRequest, error) {
	target := c.base.JoinPath("v1", "requests")
	if key != (nodepool.ClusterKey{}) {
		target = c.path(key, "requests")
	}
	answer, err := answerTo[RequestList](ctx, c, http.MethodGet, target, nil)
	return answer.Items, err
}

// Request returns one request. If wait is above 0, it returns as soon as the request is not waiting, or after that
// time: whole seconds, at most 60.
func (c *Client) Request(
	ctx context.Context, key nodepool.ClusterKey, id string, wait time.Duration,
) (OwnedRequest, error) {
	target := c.request(key, id)
	if wait > 0 {
		target.RawQuery = "wait=" + strconv.Itoa(int(wait/time.Second)) + "s"
	}
	return answerTo[OwnedRequest](ctx, c, http.MethodGet, target, nil)
}

// KeepRequest creates or replaces a request of the caller. spec is a RequestSpec as JSON.
func (c *Client) KeepRequest(
	ctx context.Context, key nodepool.ClusterKey, id string, spec json.RawMessage,
) (OwnedRequest, error) {
	return answerTo[OwnedRequest](ctx, c, http.MethodPut, c.request(key, id), spec)
}

// RenewRequest renews the lease of a request.
func (c *Client) RenewRequest(ctx context.Context, key nodepool.ClusterKey, id string) (OwnedRequest, error) {
	return answerTo[OwnedRequest](ctx, c, http.MethodPost, c.request(key, id, "renew"), nil)
}

// DeleteRequest deletes a request.
func (c *Client) DeleteRequest(ctx context.Context, key nodepool.ClusterKey, id string) error {
	return c.call(ctx, http.MethodDelete, c.request(key, id), nil, nil)
}

func (c *Client) request(key nodepool.ClusterKey, id string, rest ...string) *url.URL {
	return c.path(key, append([]string{"request_resources", url.PathEscape(id)}, rest...)...)
}
