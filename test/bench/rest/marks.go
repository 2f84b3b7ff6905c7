package main

import (
	"context"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// marks are requests on their way into a plan. A request is known in a plan by its amount, which nobody else asks for;
// what replaces it asks for stride more, and a plan that has taken that in has seen the request too.
type marks struct {
	stride int

	mu      sync.Mutex // guards what follows
	asked   map[string]map[int]time.Time
	visible []time.Duration
}

func newMarks(stride int) *marks {
	return &marks{stride: stride, asked: map[string]map[int]time.Time{}}
}

func (m *marks) add(name string, amount int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked[name] == nil {
		m.asked[name] = map[int]time.Time{}
	}
	m.asked[name][amount] = time.Now()
}

// drop forgets a request that was refused.
func (m *marks) drop(name string, amount int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.asked[name], amount)
}

// note takes a plan in.
func (m *marks) note(plan apiv1.Cluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting := m.asked[plan.Name]
	for _, demand := range plan.Summary {
		planned := int(demand.Resources[raydemand.CPU].Float())
		for amount, asked := range waiting {
			if planned >= amount && (planned-amount)%m.stride == 0 {
				m.visible = append(m.visible, time.Since(asked))
				delete(waiting, amount)
			}
		}
	}
}

func (m *marks) waitsFor(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked[name]) > 0
}

func (m *marks) missing() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	missing := 0
	for _, waiting := range m.asked {
		missing += len(waiting)
	}
	return missing
}

// lookEvery is the pause between two looks at a RayCluster: times until a plan are too long by up to that.
const lookEvery = 20 * time.Millisecond

// follow looks at one RayCluster until ctx ends, as long as something that was asked of it is in no plan yet. Events
// would not do: the server gathers them.
func (f *fleet) follow(ctx context.Context, key nodepool.ClusterKey, m *marks) {
	client, err := apiv1.NewClient(f.heliostat.URL, f.http)
	if err != nil {
		return // the address is the one that all calls use
	}
	for ctx.Err() == nil {
		if m.waitsFor(key.Name) {
			if cluster, err := client.Status(ctx, key); err == nil {
				m.note(cluster)
			}
		}
		time.Sleep(lookEvery)
	}
}
