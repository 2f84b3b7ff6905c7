package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/errgroup"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Division says how several replicas divide the RayClusters. Each knows the decisions about its own.
type Division interface {
	// Route returns the IP address and port of the replica that decides about a RayCluster: "" if its address is
	// unknown. mine: this replica does. known is false if none does now.
	Route(key nodepool.ClusterKey) (address string, mine, known bool)
	// Addresses returns those of all other replicas. complete is false while some RayCluster may be in none of the
	// replicas' answers.
	Addresses() (addresses []string, complete bool)
}

// divide passes a call about one RayCluster on, unless this replica decides about it. What every replica knows, such as
// nodes, it answers itself, and handlers of calls about all RayClusters gather the answers of all replicas.
func (r *relay) divide(c *gin.Context) {
	key := nodepool.ClusterKey{Namespace: c.Param("namespace"), Name: c.Param("name")}
	if !strings.HasPrefix(c.FullPath(), "/v1/") || key.Name == "" {
		return
	}
	if address, mine, known := r.Division.Route(key); !mine {
		r.passTo(c, address, known, "no shard decides about this RayCluster now; one takes over within seconds")
	}
}

// maxGathered bounds the answer of one shard in bytes.
const maxGathered = 64 << 20

// listed returns the items that the caller may list, and the answers of all other shards to the same call.
func listed[A, T any](s *server, c *gin.Context, items []T, namespaceOf func(T) string) ([]T, []A, error) {
	if err := s.incomplete(); err != nil {
		return nil, nil, err
	}
	items, err := visible(s, c, items, namespaceOf)
	if err != nil {
		return nil, nil, err
	}
	others, err := gathered[A](s, c)
	return items, others, err
}

// gathered returns the answers of all other shards to a call about all RayClusters; none without shards, and for a call
// of a shard that gathers the answers itself. It returns an error rather than a part.
func gathered[T any](s *server, c *gin.Context) ([]T, error) {
	if s.Division == nil {
		return nil, nil
	}
	addresses, complete := s.Division.Addresses()
	switch {
	case !complete:
		return nil, &problem{Kind: kindUnavailable,
			Detail: "RayClusters move between shards now, so a list could lack some; try again"}
	case c.GetHeader(passedHeader) != "":
		return nil, nil
	}
	answers := make([]T, len(addresses))
	calls, ctx := errgroup.WithContext(c.Request.Context())
	for i, address := range addresses {
		if err := s.relay.mayPass(c, address); err != nil {
			return nil, err
		}
		calls.Go(func() error { return s.relay.ask(ctx, c.Request, address, &answers[i]) })
	}
	if err := calls.Wait(); err != nil {
		s.Log.Warn("a shard did not answer a list", "error", err)
		return nil, &problem{Kind: kindUnavailable,
			Detail: "a shard does not answer now, so the list would lack its RayClusters; try again"}
	}
	return answers, nil
}

// ask sends a call to another shard, in the name of the same caller, and decodes its answer.
func (r *relay) ask(ctx context.Context, call *http.Request, address string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	out := call.Clone(ctx)
	out.URL.Scheme, out.URL.Host, out.Body = r.scheme, address, nil
	out.Header = http.Header{passedHeader: {"1"}}
	for _, name := range []string{"Authorization", access.ForwardedHeader, "Origin"} {
		if values := call.Header.Values(name); len(values) > 0 {
			out.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	response, err := r.transport.RoundTrip(out)
	if err != nil {
		return fmt.Errorf("calling shard %s: %w", address, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxGathered+1))
	switch {
	case err == nil && len(text) > maxGathered:
		err = fmt.Errorf("it has more than %d bytes", maxGathered)
	case err == nil && response.StatusCode != http.StatusOK:
		err = fmt.Errorf("%s: %.200s", response.Status, text)
	case err == nil:
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		return fmt.Errorf("the answer of shard %s: %w", address, err)
	}
	return nil
}
