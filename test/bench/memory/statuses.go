package main

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/rig"
)

// statuses counts the large objects by namespace, state and code, page by page. missing counts those without a status.
func (s *scene) statuses(ctx context.Context) (lines []string, missing int, err error) {
	counts := map[string]int{}
	for _, namespace := range s.hostile {
		options := metav1.ListOptions{Limit: 100}
		for {
			page, err := s.objects.Resource(rig.ResourceRequests).Namespace(namespace).List(ctx, options)
			if err != nil {
				return nil, 0, fmt.Errorf("reading the statuses of %s: %w", namespace, err)
			}
			for i := range page.Items {
				state, _, _ := unstructured.NestedString(page.Items[i].Object, "status", "state")
				code, _, _ := unstructured.NestedString(page.Items[i].Object, "status", "reason", "code")
				if state == "" {
					missing++
				}
				counts[fmt.Sprintf("%s: %s %s", namespace, state, code)]++
			}
			if options.Continue = page.GetContinue(); options.Continue == "" {
				break
			}
		}
	}
	for what, n := range counts {
		lines = append(lines, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(lines)
	return lines, missing, nil
}
