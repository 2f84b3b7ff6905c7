package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
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

	reading singleflight.Group
	last    atomic.Pointer[nodepoolsReading] // nil before the first
}

type nodepoolsReading struct {
	at     time.Time
	report apiv1.NodepoolsReport
}

// newNodepools returns a view of the nodes in the API server.
func newNodepools(config *rest.Config, options kube.Options) *nodepoolsView {
	return &nodepoolsView{
		list:   func(ctx context.Context) (*decode.NodeSet, error) { return kube.ListNodes(ctx, config) },
		reader: options.GPUs, pools: options.Pools, now: time.Now,
	}
}

// Nodepools returns the last reading if it is recent, otherwise it waits for the next one.
func (v *nodepoolsView) Nodepools(ctx context.Context) (report apiv1.NodepoolsReport, err error) {
	if last := v.last.Load(); last != nil && v.now().Sub(last.at) < nodepoolsAge {
		return last.report, nil
	}
	select {
	case read := <-v.reading.DoChan("", v.read):
		report, _ = read.Val.(apiv1.NodepoolsReport)
		return report, read.Err
	case <-ctx.Done():
		return report, fmt.Errorf("%w: nodes are still being read", api.ErrUnavailable)
	}
}

// read continues when the caller that started it gives up, because others may wait for it. A failed reading is not
// kept.
func (v *nodepoolsView) read() (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), nodepoolsTimeout)
	defer cancel()
	reader, report := v.reader, apiv1.NodepoolsReport{}
	reader.At = v.now()
	set, err := v.list(ctx)
	switch {
	case err == nil:
		report = NodepoolsReport(set, reader, v.pools)
	case apierrors.IsForbidden(err):
		report.Notes = []string{"reading nodes is forbidden, so they are unknown: " + err.Error()}
	default:
		return nil, errors.Join(api.ErrUnavailable, err)
	}
	v.last.Store(&nodepoolsReading{reader.At, report})
	return report, nil
}

// NodepoolsReport describes nodes and pools. Its Nodes are nil if there are none.
func NodepoolsReport(set *decode.NodeSet, reader sharing.Reader, config landing.Config) apiv1.NodepoolsReport {
	nodes := set.Nodes()
	slices.SortStableFunc(nodes, func(a, b sharing.NodeObject) int { return strings.Compare(a.Name, b.Name) })
	report := apiv1.NodepoolsReport{
		Pools: landing.All(reader, nodes, config, set.Ceilings),
		Notes: append([]string{}, set.Notes...),
	}
	for _, node := range nodes {
		report.Nodes = append(report.Nodes, reader.Read(node))
	}
	return report
}
