package apiv1

import "time"

// List returns items, or an empty list for nil: in JSON, lists are never null.
func List[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// Time returns t in UTC, or nil for the zero time, which is null in JSON.
func Time(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
