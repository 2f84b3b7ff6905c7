package kube

import (
	"cmp"
	"context"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/requests"
)

// OwnedRequests returns the store of ResourceRequests. In the single form it has none, and says so.
func (m *Manager) OwnedRequests() requests.Calls {
	return requests.Calls{
		Store: m.requests, Writer: m.requestWriter, Cluster: m.newest, Writable: m.options.writable, Trace: m.callTrace,
	}
}

// RequestMemory returns what ResourceRequests take in memory; zero in the single form, which has none.
func (m *Manager) RequestMemory() requests.Memory {
	if m.requests == nil {
		return requests.Memory{}
	}
	return m.requests.Memory()
}

// wireRequests prepares the store of ResourceRequests and the writer of what becomes of them.
func (m *Manager) wireRequests() {
	m.requests = requests.New(requests.Config{
		Client: m.userRequests, Pages: m.requestPages, Discovery: m.discovery, Namespaces: m.options.Namespaces,
		Memory: cmp.Or(m.options.RequestMemory, nodepool.DefaultRequestMemory), Logger: m.options.Logger,
		Changed: m.pool.enqueueForRequest, StatusChanged: m.pool.enqueueForStatus,
	})
	m.requestWriter = requests.NewWriter(m.requests, m.requestObjects, m.Leading, m.options.Logger)
}

// callTrace is what a ResourceRequest keeps of the call that asks for it.
func (m *Manager) callTrace(ctx context.Context, now time.Time) string {
	if m.options.Traces.Call == nil {
		return ""
	}
	if call := m.options.Traces.Call(ctx); call != "" {
		return call + " " + now.UTC().Format(time.RFC3339)
	}
	return ""
}
