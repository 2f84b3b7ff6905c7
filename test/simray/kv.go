package simray

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

type kvKey struct{ namespace, key string }

// sdkKey is the key of request_resources on a v1 head.
var sdkKey = kvKey{"", "autoscaler_resource_request"}

func (c *cluster) startKV() {
	flag := "1"
	if c.options.V1 {
		flag = "0"
	}
	c.kv[kvKey{"__autoscaler", "__autoscaler_v2_enabled"}] = []byte(flag)
	c.kv[kvKey{"session", "session_name"}] = []byte(c.session)
}

// RequestResources does the same as the function of Ray's SDK with this name, for the version of the head. entries are
// the bundles of one call with their counts. A call without entries clears the request.
func (h *Head) RequestResources(entries []raydemand.Request) {
	h.look(func(c *cluster, _ time.Time) {
		v := c.options.Version
		if !c.options.V1 {
			c.constraint = constraintOf(v, entries)
		}
		if c.options.V1 || v.writesKVBeside() {
			c.kv[sdkKey] = sdkJSON(v, entries)
		}
	})
}

func constraintOf(v Version, entries []raydemand.Request) *autoscalerpb.ClusterResourceConstraint {
	constraint := &autoscalerpb.ClusterResourceConstraint{}
	for _, e := range entries {
		request := wireRequest(e.Bundle)
		if len(e.Selectors) > 0 && v.hasLabels() {
			request.LabelSelectors = wireSelectors(e.Selectors[:1], 0)
		}
		constraint.ResourceRequests = append(constraint.ResourceRequests,
			&autoscalerpb.ResourceRequestByCount{Request: request, Count: e.Count})
	}
	return constraint
}

func sdkJSON(v Version, entries []raydemand.Request) []byte {
	elements := []any{}
	for _, e := range entries {
		for range e.Count {
			if !v.kvObjects() {
				elements = append(elements, e.Bundle)
				continue
			}
			selector := raydemand.Selector{}
			if len(e.Selectors) > 0 {
				selector = e.Selectors[0]
			}
			elements = append(elements, map[string]any{"resources": e.Bundle, "label_selector": selector})
		}
	}
	text, err := json.Marshal(elements)
	if err != nil {
		panic("marshaling bundles: " + err.Error()) // amounts and strings always marshal
	}
	return text
}

type kvService struct {
	raypb.UnimplementedInternalKVGcsServiceServer
	head *Head
}

func (s kvService) InternalKVGet(_ context.Context, r *raypb.InternalKVGetRequest) (*raypb.InternalKVGetReply, error) {
	reply := &raypb.InternalKVGetReply{Status: &raypb.GcsStatus{Code: 17, Message: "Failed to find the key"}}
	s.head.look(func(c *cluster, _ time.Time) {
		if value, ok := c.kv[kvKey{string(r.GetNamespace()), string(r.GetKey())}]; ok {
			reply = &raypb.InternalKVGetReply{Status: &raypb.GcsStatus{}, Value: value}
		}
	})
	return reply, nil
}

func (s kvService) InternalKVPut(_ context.Context, r *raypb.InternalKVPutRequest) (*raypb.InternalKVPutReply, error) {
	reply := &raypb.InternalKVPutReply{Status: &raypb.GcsStatus{}}
	s.head.look(func(c *cluster, _ time.Time) {
		key := kvKey{string(r.GetNamespace()), string(r.GetKey())}
		_, exists := c.kv[key]
		reply.Added = !exists
		if !exists || r.GetOverwrite() {
			c.kv[key] = r.GetValue()
		}
	})
	return reply, nil
}

func (s kvService) InternalKVDel(_ context.Context, r *raypb.InternalKVDelRequest) (*raypb.InternalKVDelReply, error) {
	reply := &raypb.InternalKVDelReply{Status: &raypb.GcsStatus{}}
	s.head.look(func(c *cluster, _ time.Time) {
		for key := range c.kv {
			match := key.key == string(r.GetKey()) ||
				r.GetDelByPrefix() && strings.HasPrefix(key.key, string(r.GetKey()))
			if key.namespace == string(r.GetNamespace()) && match {
				delete(c.kv, key)
				reply.DeletedNum++
			}
		}
	})
	return reply, nil
}
