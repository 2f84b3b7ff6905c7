package apiv1

import (
	"encoding/json"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// AskedBundle is one entry of bundles in a request_resources call: amounts alone, or with a wish for the GPUs behind them and how often it is
// meant. Its JSON is Ray's, a bundle, where there is neither.
type AskedBundle struct {
	Bundle raydemand.Bundle
	Slice  *raydemand.SliceRequirement
	// Count is how many there are; 0 means one.
	Count int64
}

// MarshalJSON writes the bundle itself, or an object with resources, slice and count where more than a bundle is asked for.
func (b AskedBundle) MarshalJSON() ([]byte, error) {
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
