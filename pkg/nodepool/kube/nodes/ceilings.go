package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

const (
	// ceilingPause is how often ceilings are read. They change when a person changes them.
	ceilingPause = 15 * time.Second
	// ceilingsLast is how long a reading is valid. The Cluster Autoscaler writes its status every 10 s while it runs
	// (--scan-interval).
	ceilingsLast = 5 * time.Minute
)

// ceilingWatch reads periodically how far pools can grow, once for all RayClusters. Without the right to read, or
// without a source, no pool has a ceiling.
type ceilingWatch struct {
	status, nodePools *ceilingSource
	log               *slog.Logger
	// read receives the ceilings after each reading, and whether they have all NodePools.
	read func(ceilings []landing.Ceiling, nodePools bool)

	mu      sync.Mutex
	unknown string // guarded by mu; what is unknown, and why
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

// newCeilingWatch prepares the reads; Start begins them.
func newCeilingWatch(
	status corev1client.ConfigMapInterface,
	nodePools dynamic.ResourceInterface,
	log *slog.Logger,
	read func([]landing.Ceiling, bool),
) *ceilingWatch {
	return &ceilingWatch{
		log: log, read: read,
		status: &ceilingSource{
			what: "the Cluster Autoscaler's status",
			read: func(ctx context.Context) ([]landing.Ceiling, error) { return readStatus(ctx, status, time.Now()) },
		},
		nodePools: &ceilingSource{
			what: "Karpenter's NodePools",
			read: func(ctx context.Context) ([]landing.Ceiling, error) { return readNodePools(ctx, nodePools) },
		},
	}
}

// Start reads ceilings until ctx ends.
func (c *ceilingWatch) Start(ctx context.Context) error {
	for {
		all := c.readAll(ctx)
		if c.read(all, c.nodePools.whole); !reflector.Sleep(ctx, reflector.Jittered(ceilingPause)) {
			return nil
		}
	}
}

// readAll reads all sources, and logs when what is unknown changes.
func (c *ceilingWatch) readAll(ctx context.Context) (all []landing.Ceiling) {
	var problems []string
	for _, source := range []*ceilingSource{c.status, c.nodePools} {
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
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return "may not be read"
	}
	return "cannot be used: " + strings.ReplaceAll(err.Error(), "\n", "; ")
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

// errContent is wrapped by errors about the content, as opposed to errors about reading.
var errContent = errors.New("its content")

// isDefinite reports whether the API server responded, and its response makes the ceilings unknown.
func isDefinite(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || errors.Is(err, errContent)
}

func readStatus(ctx context.Context, client corev1client.ConfigMapInterface, now time.Time) ([]landing.Ceiling, error) {
	config, err := client.Get(ctx, decode.StatusConfigMap, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	written, err := decode.StatusTime(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errContent, err)
	}
	if age := now.Sub(written); age > ceilingsLast {
		return nil, fmt.Errorf("%w has not been written since %s", errContent, written.UTC().Format(time.RFC3339))
	}
	found, err := decode.AutoscalerCeilings(config.Data["status"])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errContent, err)
	}
	return found, nil
}

// readNodePools reads NodePools. It returns one that it cannot read without limits, together with an error: the limits
// of the others are known.
func readNodePools(ctx context.Context, client dynamic.ResourceInterface) (found []landing.Ceiling, err error) {
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
