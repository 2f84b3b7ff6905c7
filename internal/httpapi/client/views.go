package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Explain says why one thing of a cluster is as it is. Exactly one field of the question is set.
func (c *Client) Explain(ctx context.Context, key nodepool.ClusterKey, question planner.Question) (planner.Explanation, error) {
	query := url.Values{}
	for name, value := range map[string]string{"group": question.Group, "pod": question.Pod, "gang": question.Gang, "request": question.Request} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if question.Demand != nil {
		text, err := json.Marshal(question.Demand)
		if err != nil {
			return planner.Explanation{}, fmt.Errorf("encoding the demand to explain: %w", err)
		}
		query.Set("bundle", string(text))
	}
	target := c.path(key, "explain")
	target.RawQuery = query.Encode()
	var answer planner.Explanation
	err := c.call(ctx, http.MethodGet, target, nil, &answer)
	return answer, err
}

// SetFreeze freezes a cluster, or unfreezes it, and returns whether it is frozen now.
func (c *Client) SetFreeze(ctx context.Context, key nodepool.ClusterKey, frozen bool) (bool, error) {
	method := http.MethodDelete
	if frozen {
		method = http.MethodPut
	}
	var answer apiv1.Freeze
	err := c.call(ctx, method, c.path(key, "freeze"), nil, &answer)
	return answer.Frozen, err
}

// SetManaged lets Heliostat scale a cluster, or only plan for it, and returns what the cluster's annotation says now.
func (c *Client) SetManaged(ctx context.Context, key nodepool.ClusterKey, managed bool) (nodepool.Mode, error) {
	method := http.MethodDelete
	if managed {
		method = http.MethodPut
	}
	var answer apiv1.ModeSet
	err := c.call(ctx, method, c.path(key, "manage"), nil, &answer)
	return answer.Mode, err
}

// RequestBody is RequestResources with the body as it stands, an object or a list of bundles.
func (c *Client) RequestBody(ctx context.Context, key nodepool.ClusterKey, body json.RawMessage) (apiv1.Requested, error) {
	var answer apiv1.Requested
	err := c.call(ctx, http.MethodPost, c.path(key, "request_resources"), body, &answer)
	return answer, err
}

// Plan plans what would be if what the text says, a JSON object in the words of a snapshot, were so. It writes nothing.
func (c *Client) Plan(ctx context.Context, key nodepool.ClusterKey, supposition json.RawMessage) (apiv1.SupposingAnswer, error) {
	var answer apiv1.SupposingAnswer
	err := c.call(ctx, http.MethodPost, c.path(key, "plan"), supposition, &answer)
	return answer, err
}

// History lists the last decisions about a cluster, newest first.
func (c *Client) History(ctx context.Context, key nodepool.ClusterKey) ([]apiv1.HistoryEntry, error) {
	var answer apiv1.HistoryList
	err := c.call(ctx, http.MethodGet, c.path(key, "history"), nil, &answer)
	return answer.Items, err
}

// PastSnapshot exports what a decision of the past was made from, byte for byte as the server sent it.
func (c *Client) PastSnapshot(ctx context.Context, key nodepool.ClusterKey, id string) (json.RawMessage, error) {
	var answer json.RawMessage
	err := c.call(ctx, http.MethodGet, c.path(key, "history", url.PathEscape(id)), nil, &answer)
	return answer, err
}

// PastPlan is the plan of a decision of the past.
func (c *Client) PastPlan(ctx context.Context, key nodepool.ClusterKey, id string) (planner.Plan, error) {
	var answer planner.Plan
	err := c.call(ctx, http.MethodGet, c.path(key, "history", url.PathEscape(id), "plan"), nil, &answer)
	return answer, err
}

// Nodepools shows what the server understands of nodes and pools.
func (c *Client) Nodepools(ctx context.Context) (apiv1.NodepoolsReport, error) {
	var answer apiv1.NodepoolsReport
	err := c.call(ctx, http.MethodGet, c.base.JoinPath("v1", "nodepools"), nil, &answer)
	return answer, err
}

// Event is one server-sent event.
type Event struct {
	// ID grows from one event of a server to the next; Kind is status, demand, plan or gone.
	ID, Kind string
	Data     json.RawMessage
}

// ErrStreamEnded says that the server ended a stream; begin anew.
var ErrStreamEnded = errors.New("the server ended the stream")

// Follow calls hear with every event about a cluster, or about the fleet where the key is zero, until ctx ends, the stream does
// (ErrStreamEnded, with the server's reason), or hear fails. It has no deadline of its own.
func (c *Client) Follow(ctx context.Context, key nodepool.ClusterKey, hear func(Event) error) error {
	target := c.base.JoinPath("v1", "events")
	if key != (nodepool.ClusterKey{}) {
		target = c.path(key, "events")
	}
	return c.wrap("following", target, c.follow(ctx, target, hear))
}

func (c *Client) follow(ctx context.Context, target *url.URL, hear func(Event) error) error {
	request, err := newRequest(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/event-stream")
	unlimited := *c.http
	unlimited.Timeout = 0
	response, err := unlimited.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // what was read of it
		return readProblem(response, text)
	}
	return readEvents(response.Body, hear)
}

// readEvents reads the lines of a stream. A comment tells nothing.
func readEvents(body io.Reader, hear func(Event) error) error {
	lines := bufio.NewReader(body)
	var event Event
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%w: %w", ErrStreamEnded, err)
		}
		field, value, _ := strings.Cut(string(bytes.TrimRight(line, "\r\n")), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case len(event.Data) > maxAnswer:
			return fmt.Errorf("an event is larger than %d bytes", maxAnswer)
		case field == "id":
			event.ID = value
		case field == "event":
			event.Kind = value
		case field == "data":
			event.Data = append(event.Data, value...)
		case field == "" && value == "" && len(event.Data) > 0:
			if event.Kind == apiv1.EventEnd {
				return fmt.Errorf("%w: %s", ErrStreamEnded, endReason(event.Data))
			}
			if err := hear(event); err != nil {
				return err
			}
			event = Event{}
		}
	}
}

// endReason is why a stream ended.
func endReason(data []byte) string {
	var end struct {
		Reason string `json:"reason"`
	}
	if json.Unmarshal(data, &end) != nil || end.Reason == "" {
		return "for a reason that it does not tell"
	}
	return end.Reason
}

// Shadow compares what Heliostat would have of a cluster with what somebody else asks for.
func (c *Client) Shadow(ctx context.Context, key nodepool.ClusterKey) (apiv1.ShadowComparison, error) {
	var answer apiv1.ShadowComparison
	err := c.call(ctx, http.MethodGet, c.path(key, "shadow"), nil, &answer)
	return answer, err
}

// Version says which build the server is.
func (c *Client) Version(ctx context.Context) (apiv1.Build, error) {
	var answer apiv1.Build
	err := c.call(ctx, http.MethodGet, c.base.JoinPath("version"), nil, &answer)
	return answer, err
}
