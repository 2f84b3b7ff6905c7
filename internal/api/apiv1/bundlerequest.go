package apiv1

import (
	"encoding/json"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// BundleRequest is one entry of bundles in a request_resources call: amounts, a requirement for their GPUs, and a
// count. With amounts alone, its JSON is a plain bundle, as in Ray.
type BundleRequest struct {
	Bundle raydemand.Bundle
	Slice  *raydemand.SliceRequirement
	// Count is the number of bundles; 0 means one.
	Count int64
}

// MarshalJSON writes a plain bundle, or an object with resources, slice and count if there is a slice or a count.
func (b BundleRequest) MarshalJSON() ([]byte, error) {
	if b.Slice == nil && b.Count <= 1 {
		if b.Bundle == nil {
			return []byte("{}"), nil
		}
		return json.Marshal(b.Bundle)
	}
	return json.Marshal(struct {
		Resources raydemand.Bundle            `json:"resources"`
		Slice     *raydemand.SliceRequirement `json:"slice,omitempty"`
		Count     int64                       `json:"count"`
	}{b.Bundle, b.Slice, max(b.Count, 1)})
}
