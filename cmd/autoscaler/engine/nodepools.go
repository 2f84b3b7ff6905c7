package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Limits of reading nodes for callers: listing all pods of a large cluster takes seconds.
const (
	nodepoolsAge     = 30 * time.Second
	nodepoolsTimeout = time.Minute
)

// nodepoolsView reads nodes and pools for callers of the REST API, who share one reading.
type nodepoolsView struct {
	list   func(context.Context) (*decode.NodeSet, error)
	reader sharing.Reader
	pools  landing.Config
	now    func() time.Time

	mu      sync.Mutex // guards what follows
	reading *nodepoolsReading
}

// nodepoolsReading is one reading, in progress until done is closed. The fields after done are set by then.
type nodepoolsReading struct {
	done   chan struct{}
	at     time.Time
	report apiv1.NodepoolsReport
	err    error
}

// newNodepools returns a view of the nodes in the API server.
func newNodepools(config *rest.Config, options kube.Options) *nodepoolsView {
	return &nodepoolsView{
		list:   func(ctx context.Context) (*decode.NodeSet, error) { return kube.ListNodes(ctx, config) },
		reader: options.GPUs, pools: options.Pools, now: time.Now,
	}
}

// Nodepools returns the last reading if it is recent, otherwise it waits for the next one.
func (v *nodepoolsView) Nodepools(ctx context.Context) (apiv1.NodepoolsReport, error) {
	reading := v.current()
	select {
	case <-reading.done:
		return reading.report, reading.err
	case <-ctx.Done():
		return apiv1.NodepoolsReport{}, fmt.Errorf("%w: nodes are still being read", api.ErrUnavailable)
	}
}

// current returns the reading to wait for. It does not keep a failed one.
func (v *nodepoolsView) current() *nodepoolsReading {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r := v.reading; r != nil {
		select {
		case <-r.done:
			if r.err == nil && v.now().Sub(r.at) < nodepoolsAge {
				return r
			}
		default:
			return r
		}
	}
	v.reading = &nodepoolsReading{done: make(chan struct{}), at: v.now()}
	go v.read(v.reading)
	return v.reading
}

// read continues when the caller that started it gives up, because others may wait for it.
func (v *nodepoolsView) read(r *nodepoolsReading) {
	defer close(r.done)
	ctx, cancel := context.WithTimeout(context.Background(), nodepoolsTimeout)
	defer cancel()
	set, err := v.list(ctx)
	switch {
	case err == nil:
		r.report = NodepoolsReport(set, v.readerAt(r.at), v.pools)
	case apierrors.IsForbidden(err):
		r.report.Notes = []string{"reading nodes is forbidden, so they are unknown: " + err.Error()}
	default:
		r.err = errors.Join(api.ErrUnavailable, err)
	}
}

func (v *nodepoolsView) readerAt(now time.Time) sharing.Reader {
	reader := v.reader
	reader.At = now
	return reader
}

// NodepoolsReport describes nodes and pools. Its Nodes are nil if there are none.
func NodepoolsReport(set *decode.NodeSet, reader sharing.Reader, config landing.Config) apiv1.NodepoolsReport {
	nodes := set.Nodes()
	slices.SortStableFunc(nodes, func(a, b sharing.NodeObject) int { return strings.Compare(a.Name, b.Name) })
	report := apiv1.NodepoolsReport{
		Pools: landing.All(reader, nodes, config, set.Ceilings),
		Notes: append([]string{}, set.Notes...),
	}
	landing.CountClaims(report.Pools, set.Claims, reader.At)
	for _, node := range nodes {
		report.Nodes = append(report.Nodes, reader.Read(node))
	}
	return report
}
