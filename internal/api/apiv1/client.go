package apiv1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

// callTimeout is the timeout of the default HTTP client. It is the same as the write timeout of the server.
const callTimeout = 30 * time.Second

// Client calls a Heliostat server. Its errors wrap the *Problem of the server, if there is one.
type Client struct {
	base *url.URL
	http *http.Client
}

// NewClient returns a client of the server at address, for example http://127.0.0.1:8090. If httpClient is nil, calls
// time out after 30 seconds.
func NewClient(address string, httpClient *http.Client) (*Client, error) {
	if !strings.Contains(address, "://") { // the error of net/url is unclear
		return nil, fmt.Errorf("reading server address %q: write https://host:port, or http:// without TLS", address)
	}
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil {
		return nil, fmt.Errorf("reading server address %q: %w", address, err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("reading server address %q: write http://host:port", address)
	}
	if port := base.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("reading server address %q: port %s: want 1 to 65535", address, port)
		}
	}
	if httpClient == nil {
		httpClient = &http.Client{Timeout: callTimeout}
	}
	return &Client{base: base, http: httpClient}, nil
}

// Clusters lists all clusters, or those of one namespace if it is not empty.
func (c *Client) Clusters(ctx context.Context, namespace string) ([]ClusterSummary, error) {
	target := c.base.JoinPath("v1", "rayclusters")
	if namespace != "" {
		target = c.base.JoinPath("v1", "namespaces", url.PathEscape(namespace), "rayclusters")
	}
	answer, err := answerTo[ClusterList](ctx, c, http.MethodGet, target, nil)
	return answer.Items, err
}

// Status returns one cluster.
func (c *Client) Status(ctx context.Context, key nodepool.ClusterKey) (Cluster, error) {
	return answerTo[Cluster](ctx, c, http.MethodGet, c.path(key), nil)
}

// RequestResources replaces the plain request of the cluster: body is a RequestResources, or JSON, an object or a list
// of bundles. The zero request clears it.
func (c *Client) RequestResources(ctx context.Context, key nodepool.ClusterKey, body any) (Requested, error) {
	return answerTo[Requested](ctx, c, http.MethodPost, c.path(key, "request_resources"), body)
}

func (c *Client) path(key nodepool.ClusterKey, rest ...string) *url.URL {
	parts := append(
		[]string{"v1", "namespaces", url.PathEscape(key.Namespace), "rayclusters", url.PathEscape(key.Name)},
		rest...)
	return c.base.JoinPath(parts...)
}

// answerTo makes a call and returns its answer.
func answerTo[T any](ctx context.Context, c *Client, method string, target *url.URL, body any) (answer T, err error) {
	err = c.call(ctx, method, target, body, &answer)
	return answer, err
}

// call makes a call. Its errors name the call; a problem names the server instead, because it names the call itself.
func (c *Client) call(ctx context.Context, method string, target *url.URL, body, into any) error {
	err := c.exchange(ctx, method, target, body, into)
	var wrapped *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*Problem)):
		return fmt.Errorf("%s answers %w", c.base.Redacted(), err)
	case errors.Is(err, syscall.ECONNREFUSED):
		err = fmt.Errorf("nothing listens there: start the server, or use another address (%w)", syscall.ECONNREFUSED)
	case errors.As(err, &wrapped):
		err = wrapped.Err // without the method and address that net/http adds
	}
	return fmt.Errorf("calling %s %s: %w", method, target.Redacted(), err)
}

func (c *Client) exchange(ctx context.Context, method string, target *url.URL, body, into any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encoding the request: %w", err)
		}
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), sent)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("reading the answer: %w", err)
	case response.StatusCode >= 300:
		return readProblem(response, text)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("decoding the answer: %w", err)
	}
	return nil
}

// readProblem returns the server's problem document, or the HTTP status if something in between answered.
func readProblem(response *http.Response, text []byte) error {
	var problem Problem
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/problem+json") &&
		json.Unmarshal(text, &problem) == nil {
		return &problem
	}
	// The API server's proxy answers with a Status.
	var status struct{ Kind, Message string }
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" && status.Message != "" {
		return fmt.Errorf("the API server answered %s: %s", response.Status, status.Message)
	}
	return fmt.Errorf("the server answered %s", response.Status)
}

// Requests lists the requests of a cluster, the plain one first.
func (c *Client) Requests(ctx context.Context, key nodepool.ClusterKey) (RequestList, error) {
	return answerTo[RequestList](ctx, c, http.MethodGet, c.path(key, "requests"), nil)
}

// Request returns one request.
func (c *Client) Request(ctx context.Context, key nodepool.ClusterKey, id string) (OwnedRequest, error) {
	return answerTo[OwnedRequest](ctx, c, http.MethodGet, c.request(key, id), nil)
}

// KeepRequest creates or replaces a request of the caller, and renews its lease. spec is a RequestSpec as JSON.
func (c *Client) KeepRequest(
	ctx context.Context, key nodepool.ClusterKey, id string, spec json.RawMessage,
) (OwnedRequest, error) {
	return answerTo[OwnedRequest](ctx, c, http.MethodPut, c.request(key, id), spec)
}

// DeleteRequest deletes a request.
func (c *Client) DeleteRequest(ctx context.Context, key nodepool.ClusterKey, id string) error {
	return c.call(ctx, http.MethodDelete, c.request(key, id), nil, nil)
}

func (c *Client) request(key nodepool.ClusterKey, id string) *url.URL {
	return c.path(key, "request_resources", url.PathEscape(id))
}

// Explain explains one thing in a cluster. Exactly one field of the question must be set.
func (c *Client) Explain(
	ctx context.Context, key nodepool.ClusterKey, question planner.Question,
) (planner.Explanation, error) {
	query := queryOf(map[string]string{
		"group": question.Group, "pod": question.Pod, "gang": question.Gang, "request": question.Request,
	})
	if question.Demand != nil {
		text, err := json.Marshal(question.Demand)
		if err != nil {
			return planner.Explanation{}, fmt.Errorf("encoding the demand to explain: %w", err)
		}
		query.Set("bundle", string(text))
	}
	target := c.path(key, "explain")
	target.RawQuery = query.Encode()
	return answerTo[planner.Explanation](ctx, c, http.MethodGet, target, nil)
}

// queryOf returns the parameters that are not empty.
func queryOf(parameters map[string]string) url.Values {
	query := url.Values{}
	for name, value := range parameters {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// SetFreeze freezes or unfreezes a cluster.
func (c *Client) SetFreeze(ctx context.Context, key nodepool.ClusterKey, frozen bool) error {
	return c.set(ctx, c.path(key, "freeze"), frozen)
}

// SetManaged lets Heliostat scale a cluster, or only plan for it.
func (c *Client) SetManaged(ctx context.Context, key nodepool.ClusterKey, managed bool) error {
	return c.set(ctx, c.path(key, "manage"), managed)
}

func (c *Client) set(ctx context.Context, target *url.URL, on bool) error {
	method := http.MethodDelete
	if on {
		method = http.MethodPut
	}
	return c.call(ctx, method, target, nil, nil)
}

// GiveBack gives GPUs back, or only says which ones.
func (c *Client) GiveBack(ctx context.Context, key nodepool.ClusterKey, ask giveback.Ask) (giveback.State, error) {
	return answerTo[giveback.State](ctx, c, http.MethodPost, c.path(key, "give_back"), ask)
}

// GivenBack returns what a cluster gives back.
func (c *Client) GivenBack(ctx context.Context, key nodepool.ClusterKey) (giveback.State, error) {
	return answerTo[giveback.State](ctx, c, http.MethodGet, c.path(key, "give_back"), nil)
}

// EndGiveBack ends the reservation of a cluster.
func (c *Client) EndGiveBack(ctx context.Context, key nodepool.ClusterKey) error {
	return c.call(ctx, http.MethodDelete, c.path(key, "give_back"), nil, nil)
}

// Plan plans with changes to the snapshot, a JSON object with its fields. It writes nothing.
func (c *Client) Plan(ctx context.Context, key nodepool.ClusterKey, changes json.RawMessage) (planner.Plan, error) {
	return answerTo[planner.Plan](ctx, c, http.MethodPost, c.path(key, "plan"), changes)
}

// Costs returns what workers have cost; by and namespace may be empty.
func (c *Client) Costs(ctx context.Context, by CostsBy, namespace string) (Costs, error) {
	target := c.base.JoinPath("v1", "costs")
	target.RawQuery = queryOf(map[string]string{"by": string(by), "namespace": namespace}).Encode()
	return answerTo[Costs](ctx, c, http.MethodGet, target, nil)
}
