package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// MaxRequestsBytes bounds the annotation resource-requests. Kubernetes allows 256 KiB for all annotations of an object, and
// kubectl keeps a copy of the whole object in one of them.
const MaxRequestsBytes = 64 << 10

// ResourceRequests returns what is kept in the annotation resource-requests, and since when; zero where that is not known.
// nodepool.ErrGone: no such RayCluster.
func (m *Manager) ResourceRequests(_ context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	object, err := m.newest(key)
	if err != nil {
		return nil, time.Time{}, err
	}
	cluster := m.memo.decode(object).cluster
	return cluster.RequestResources, cluster.RequestedSince, nil
}

// SetResourceRequests replaces the annotation resource-requests and notes since when it is asked for; nothing removes
// both. It is what a user asks for, so any process may write it, leading or not, whatever the mode; a frozen RayCluster is
// not written to. nodepool.ErrTooLarge names the limit.
func (m *Manager) SetResourceRequests(ctx context.Context, key nodepool.ClusterKey, requests []raydemand.Request, since time.Time) error {
	for i, request := range requests {
		if err := checkRequest(request); err != nil {
			return fmt.Errorf("requesting resources of %s: entry %d: %w", key, i, err)
		}
	}
	object, err := m.newest(key)
	if err != nil {
		return err
	}
	cluster := m.memo.decode(object).cluster
	if cluster.Freeze || cluster.Deleting {
		return fmt.Errorf("requesting resources of %s: %w", key, cluster.Writable())
	}
	patch, err := requestsPatch(cluster.UID, requests, since)
	if err != nil {
		return fmt.Errorf("requesting resources of %s: %w", key, err)
	}
	if _, err := m.patch(ctx, key, types.MergePatchType, patch); err != nil {
		return err
	}
	m.Enqueue(key)
	return nil
}

// requestsPatch is a merge patch: it works whether or not there are annotations, and the uid in it makes the API server
// refuse a RayCluster that was made anew under the same name.
func requestsPatch(uid string, requests []raydemand.Request, since time.Time) ([]byte, error) {
	var value, moment any
	if len(requests) > 0 {
		text, err := json.Marshal(requests)
		if err != nil {
			return nil, err
		}
		if len(text) > MaxRequestsBytes {
			return nil, fmt.Errorf("%w: %d bytes, the limit is %d", nodepool.ErrTooLarge, len(text), MaxRequestsBytes)
		}
		value = string(text)
		if !since.IsZero() {
			moment = since.UTC().Format(time.RFC3339)
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "annotations": map[string]any{ResourceRequestsAnnotation: value, RequestedSinceAnnotation: moment},
	}})
}

// Requests gives the annotation resource-requests of all RayClusters the shape of a store.
type Requests struct{ Manager *Manager }

// Get returns what is kept, and since when; zero where that is not known.
func (r Requests) Get(ctx context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	return r.Manager.ResourceRequests(ctx, key)
}

// Set replaces what is kept; nothing clears it.
func (r Requests) Set(ctx context.Context, key nodepool.ClusterKey, requests []raydemand.Request, since time.Time) error {
	return r.Manager.SetResourceRequests(ctx, key, requests, since)
}
