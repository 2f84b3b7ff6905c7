package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

const (
	// ceilingPause is how often ceilings are read. They change when a person changes them.
	ceilingPause = 15 * time.Second
	// ceilingRest is the least time between two readings, if something needs the newest ones.
	ceilingRest = 500 * time.Millisecond
	// ceilingsLast is how long a reading is valid. The Cluster Autoscaler writes its status every 10 s while it runs
	// (--scan-interval).
	ceilingsLast = 5 * time.Minute
)

// configMapClient is the call that the Cluster Autoscaler's status needs.
type configMapClient interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.ConfigMap, error)
}

// nodePoolClient is the call that Karpenter's NodePools need.
type nodePoolClient interface {
	List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
}

// ceilingWatch reads periodically how far pools can grow, once for all RayClusters. Without the right to read, or
// without a source, no pool has a ceiling.
type ceilingWatch struct {
	sources []*ceilingSource
	log     *slog.Logger
	// changed receives the ceilings whenever they change, with the reading of all NodePools that are among them; nil if
	// some are missing.
	changed func(ceilings []landing.Ceiling, nodePools *poolReading)

	mu      sync.Mutex
	unknown string // guarded by mu; what is unknown, and why
	// again has a token while somebody needs a new reading at once.
	again chan struct{}
}

// poolReading is a complete reading of Karpenter's NodePools.
type poolReading struct {
	// begun is when the last reading with the same result began.
	begun atomic.Pointer[time.Time]
}

// ceilingSource is one source of ceilings.
type ceilingSource struct {
	what string
	read func(context.Context) ([]landing.Ceiling, error)

	last []landing.Ceiling
	// readAt is when the last reading that succeeded began.
	readAt time.Time
	// whole: the last reading was complete.
	whole bool
}

// newCeilingWatch prepares the reads; Start begins them. changed gets the ceilings whenever they change.
func newCeilingWatch(
	status configMapClient,
	nodePools nodePoolClient,
	log *slog.Logger,
	changed func([]landing.Ceiling, *poolReading),
) *ceilingWatch {
	return &ceilingWatch{log: log, changed: changed, again: make(chan struct{}, 1), sources: []*ceilingSource{
		{
			what: "the Cluster Autoscaler's status",
			read: func(ctx context.Context) ([]landing.Ceiling, error) { return readStatus(ctx, status, time.Now()) },
		},
		{
			what: "Karpenter's NodePools",
			read: func(ctx context.Context) ([]landing.Ceiling, error) { return readNodePools(ctx, nodePools) },
		},
	}}
}

// Start reads ceilings until ctx ends.
func (c *ceilingWatch) Start(ctx context.Context) error {
	var before []landing.Ceiling
	var pools *poolReading
	for {
		now, nodePools := c.readAll(ctx), c.sources[len(c.sources)-1]
		changed := nodePools.whole != (pools != nil) || !reflect.DeepEqual(before, now)
		if changed && nodePools.whole {
			pools = &poolReading{}
		} else if changed {
			pools = nil
		}
		if pools != nil {
			pools.begun.Store(new(nodePools.readAt))
		}
		if changed {
			c.changed(now, pools)
			before = now
		}
		if !c.wait(ctx) {
			return nil
		}
	}
}

// wait waits until ceilings are to be read again, and returns false when ctx ends.
func (c *ceilingWatch) wait(ctx context.Context) bool {
	if !reflector.Sleep(ctx, ceilingRest) {
		return false
	}
	timer := time.NewTimer(reflector.Jittered(ceilingPause) - ceilingRest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-c.again:
	case <-timer.C:
	}
	return true
}

// ReadAgain requests a new reading soon.
func (c *ceilingWatch) ReadAgain() {
	select {
	case c.again <- struct{}{}:
	default:
	}
}

// readAll reads all sources, and logs when what is unknown changes.
func (c *ceilingWatch) readAll(ctx context.Context) (all []landing.Ceiling) {
	var problems []string
	for _, source := range c.sources {
		found, err := source.newest(ctx)
		if err != nil {
			problems = append(problems, source.what+" "+summaryOf(err))
			c.log.Debug("cannot read how far pools of nodes may grow", "source", source.what, "error", err)
		}
		all = append(all, found...)
	}
	if ctx.Err() != nil {
		return all
	}
	unknown := strings.Join(problems, "; ")
	c.mu.Lock()
	before := c.unknown
	c.unknown = unknown
	c.mu.Unlock()
	if unknown != before && unknown != "" {
		c.log.Info("cannot read how far pools of nodes may grow", "reason", unknown)
	}
	return all
}

// summaryOf returns an error in few words, for a finding.
func summaryOf(err error) string {
	var old *staleError
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return "may not be read"
	case errors.As(err, &old):
		return old.Error()
	}
	return "cannot be read: " + strings.ReplaceAll(err.Error(), "\n", "; ")
}

// newest reads once. A source that does not exist bounds nothing, and is not an error. If the API server does not
// respond, the last reading stays valid for a while. newest can return what it found with an error about the rest.
func (s *ceilingSource) newest(ctx context.Context) ([]landing.Ceiling, error) {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	begun := time.Now()
	found, err := s.read(ctx)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		s.last, s.readAt, s.whole = found, begun, err == nil
		return found, nil
	case isDefinite(err):
		s.last, s.whole = nil, false
		return found, err
	case time.Since(s.readAt) <= ceilingsLast && s.last != nil:
		return s.last, nil
	}
	s.whole = false
	return nil, err
}

// staleError says since when the Cluster Autoscaler has not written its status, so that it is not running.
type staleError struct{ since time.Time }

func (e *staleError) Error() string {
	return "has not been written since " + e.since.UTC().Format(time.RFC3339)
}

// errContent is wrapped by errors about the content, as opposed to errors about reading.
var errContent = errors.New("its content is not usable")

// isDefinite reports whether the API server responded, and its response makes the ceilings unknown.
func isDefinite(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || errors.Is(err, errContent)
}

func readStatus(ctx context.Context, client configMapClient, now time.Time) ([]landing.Ceiling, error) {
	config, err := client.Get(ctx, decode.StatusConfigMap, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	written, err := decode.StatusTime(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errContent, err)
	}
	if age := now.Sub(written); age > ceilingsLast {
		return nil, fmt.Errorf("%w: %w", errContent, &staleError{written})
	}
	found, err := decode.AutoscalerCeilings(config.Data["status"])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errContent, err)
	}
	return found, nil
}

// readNodePools reads NodePools. It returns one that it cannot read without limits, together with an error: the limits
// of the others are known.
func readNodePools(ctx context.Context, client nodePoolClient) (found []landing.Ceiling, err error) {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, item := range list.Items {
		ceiling, err := decode.ReadNodePool(item.Object)
		if err != nil {
			problems = append(problems, fmt.Errorf("%w: %w", errContent, err))
		}
		found = append(found, ceiling)
	}
	return found, errors.Join(problems...)
}

// AddTo adds one finding about what is unknown. If nodes are unknown, ceilings do not matter.
func (c *ceilingWatch) AddTo(cluster *nodepool.Cluster) {
	if cluster.Pools == nil {
		return
	}
	c.mu.Lock()
	unknown := c.unknown
	c.mu.Unlock()
	if unknown != "" {
		cluster.Findings = append(cluster.Findings, unread(cluster.Key, CeilingsUnknown, unknown))
	}
}
