package kube

import "heliostat.dev/heliostat/pkg/nodepool/kube/requests"

// OwnedRequests returns the calls on ResourceRequests. In the single form they return errors.
func (m *Manager) OwnedRequests() requests.Calls {
	return requests.Calls{
		Store: m.requests, Writer: m.requestWriter, Cluster: m.newest, Writable: m.options.writable,
	}
}

// BoundsUsed returns how much of the bound of Events is in use, from 0 to 1.
func (m *Manager) BoundsUsed() map[string]float64 {
	if m.nodes == nil {
		return nil
	}
	return map[string]float64{"events": m.nodes.EventsUsed()}
}

// wireRequests prepares the store of ResourceRequests and the writer of their status.
func (m *Manager) wireRequests() {
	m.requests = requests.New(requests.Config{
		Client: m.userRequests, Discovery: m.discovery, Namespaces: m.options.Namespaces, Logger: m.options.Logger,
		Changed: m.pool.EnqueueForRequest, StatusChanged: m.pool.EnqueueForStatus,
	})
	m.requestWriter = requests.NewWriter(m.requests, m.requestObjects, m.MayWrite, m.options.Logger)
}
