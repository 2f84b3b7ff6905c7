package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
)

// remembered is how long a provider offers no type that it just failed to launch, as Karpenter's AWS provider does
// (pkg/cache/cache.go: UnavailableOfferingsTTL = 3 min).
const remembered = 3 * time.Minute

// stock is a cloud provider that has none of the instance types that a file names, one on a line. The file is read at
// each launch, so a test changes the stock by writing it.
type stock struct {
	*kwok.CloudProvider
	file string
	now  func() time.Time

	mu     sync.Mutex
	failed map[string]time.Time // instance type → when its launch failed; guarded by mu
}

// Create launches a machine of a type in stock, or fails with an InsufficientCapacityError when the claim allows none.
func (s *stock) Create(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	out, err := s.outOfStock()
	if err != nil {
		return nil, err
	}
	claim = claim.DeepCopy()
	for i, requirement := range claim.Spec.Requirements {
		if requirement.Key != corev1.LabelInstanceTypeStable {
			continue
		}
		have := slices.DeleteFunc(slices.Clone(requirement.Values), func(name string) bool { return out[name] })
		if len(have) == 0 {
			s.fail(requirement.Values)
			return nil, cloudprovider.NewInsufficientCapacityError(
				fmt.Errorf("the zone has no more %s", strings.Join(requirement.Values, ", ")))
		}
		claim.Spec.Requirements[i].Values = have
	}
	return s.CloudProvider.Create(ctx, claim)
}

// GetInstanceTypes returns all types, without offers of those whose launch failed lately.
func (s *stock) GetInstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	types, err := s.CloudProvider.GetInstanceTypes(ctx, pool)
	if err != nil {
		return nil, err
	}
	offered := make([]*cloudprovider.InstanceType, 0, len(types))
	for _, t := range types {
		if s.failedLately(t.Name) {
			t = unavailable(t)
		}
		offered = append(offered, t)
	}
	return offered, nil
}

// unavailable returns a copy of a type with none of its offers available.
func unavailable(t *cloudprovider.InstanceType) *cloudprovider.InstanceType {
	offers := make(cloudprovider.Offerings, 0, len(t.Offerings))
	for _, offer := range t.Offerings {
		changed := *offer
		changed.Available = false
		offers = append(offers, &changed)
	}
	return &cloudprovider.InstanceType{
		Name: t.Name, Requirements: t.Requirements, Offerings: offers, Capacity: t.Capacity, Overhead: t.Overhead,
	}
}

func (s *stock) fail(types []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = map[string]time.Time{}
	}
	for _, name := range types {
		s.failed[name] = s.now()
	}
}

func (s *stock) failedLately(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.failed[name]
	return ok && s.now().Sub(at) < remembered
}

// outOfStock reads the file. A file that is not there names nothing.
func (s *stock) outOfStock() (map[string]bool, error) {
	text, err := os.ReadFile(s.file)
	if s.file == "" || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the types out of stock: %w", err)
	}
	out := map[string]bool{}
	for _, name := range strings.Fields(string(text)) {
		out[name] = true
	}
	return out, nil
}
