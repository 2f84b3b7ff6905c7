package kube

import (
	"cmp"
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// polled polls one RayCluster: the Role that KubeRay makes for a sidecar grants get and patch on RayClusters, and
// neither list nor watch. It may watch pods.
type polled struct {
	m      *Manager
	key    nodepool.ClusterKey
	newest atomic.Pointer[unstructured.Unstructured]
}

func newPolled(m *Manager) (*polled, error) {
	p := &polled{m: m, key: *m.options.Single}
	return p, m.manager.Add(manager.RunnableFunc(p.run))
}

func (p *polled) run(ctx context.Context) error {
	interval := cmp.Or(p.m.options.Poll, reflector.DefaultPoll)
	if p.m.pods.Await(ctx) != nil {
		return nil
	}
	for {
		p.poll(ctx)
		if !reflector.Sleep(ctx, reflector.Jittered(interval)) {
			return nil
		}
	}
}

// poll reads once. If reading fails, the object stays as it was; only a response that it is gone removes it.
func (p *polled) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	object, err := p.m.getRayCluster(ctx, p.m.rayClusters, p.key)
	switch {
	case isGone(err):
		if p.newest.Swap(nil) != nil {
			p.m.forget(p.key)
			p.m.Enqueue(p.key)
		}
	case err != nil:
		p.m.options.Logger.Warn("cannot read the RayCluster", "cluster", p.key.String(), "error", err)
	default:
		before := p.newest.Swap(object)
		if before == nil || before.GetResourceVersion() != object.GetResourceVersion() {
			p.m.Enqueue(p.key)
		}
	}
}

func (p *polled) rayCluster(key nodepool.ClusterKey) (*unstructured.Unstructured, error) {
	if key != p.key {
		return nil, nil
	}
	return p.newest.Load(), nil
}

func (p *polled) list(string) ([]*unstructured.Unstructured, error) {
	if only := p.newest.Load(); only != nil {
		return []*unstructured.Unstructured{only}, nil
	}
	return nil, nil
}
