package kube

import "heliostat.dev/heliostat/pkg/nodepool/kube/requests"

// OwnedRequests returns the calls on ResourceRequests. In the single form they return errors.
func (m *Manager) OwnedRequests() requests.Calls {
	return requests.Calls{
		Store: m.requests, Writer: m.requestWriter, Cluster: m.newest, Writable: m.options.writable,
	}
}

// wireRequests prepares the store of ResourceRequests and the writer of their status.
func (m *Manager) wireRequests() {
	m.requests = requests.New(requests.Config{
		Client: m.userRequests, Discovery: m.discovery, Namespaces: m.options.Namespaces, Logger: m.options.Logger,
		Changed: m.pool.EnqueueForRequest,
	})
	m.requestWriter = requests.NewWriter(m.requests, m.requestObjects, m.MayWrite, m.options.Logger)
}
