package decode

import (
	"encoding/json"
	"fmt"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// MaxRequestsBytes bounds the annotation resource-requests. Kubernetes allows 256 KiB for all annotations of an object,
// and kubectl keeps a copy of the whole object in one of them.
const MaxRequestsBytes = 64 << 10

// EncodeRequests returns the annotations that hold requests; a nil value removes an annotation.
func EncodeRequests(requests []raydemand.Request, since time.Time) (map[string]any, error) {
	annotations := map[string]any{ResourceRequestsAnnotation: nil, RequestedSinceAnnotation: nil}
	if len(requests) == 0 {
		return annotations, nil
	}
	text, err := json.Marshal(requests)
	if err != nil {
		return nil, err
	}
	if len(text) > MaxRequestsBytes {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", nodepool.ErrTooLarge, len(text), MaxRequestsBytes)
	}
	annotations[ResourceRequestsAnnotation] = string(text)
	if !since.IsZero() {
		annotations[RequestedSinceAnnotation] = since.UTC().Format(time.RFC3339)
	}
	return annotations, nil
}

// maxRequestCount bounds one entry of resource-requests; a larger number is a mistake.
const maxRequestCount = 1_000_000

// maxProblems is how many bad entries of resource-requests get a finding each.
const maxProblems = 3

// decodeRequests reads the annotation entry by entry, so that a bad entry does not affect the others.
func decodeRequests(text string) (requests []raydemand.Request, problems []string) {
	var entries []json.RawMessage
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, []string{"it is not a JSON list: " + err.Error()}
	}
	for i, entry := range entries {
		var request raydemand.Request
		err := json.Unmarshal(entry, &request)
		if request = request.Sliced(); err == nil {
			err = CheckRequest(request)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("entry %d is ignored: %v", i, err))
			continue
		}
		requests = append(requests, request)
	}
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems], fmt.Sprintf("%d more entries are ignored", more))
	}
	return requests, problems
}

// CheckRequest returns an error if a request cannot be planned: a count out of range, or resources that are empty or
// negative.
func CheckRequest(request raydemand.Request) error {
	if request.Count < 1 || request.Count > maxRequestCount {
		return fmt.Errorf("count is %d, want 1 to %d", request.Count, maxRequestCount)
	}
	if request.Bundle.IsZero() {
		return fmt.Errorf("resources are empty")
	}
	for _, name := range request.Bundle.Names() {
		if name == "" || request.Bundle[name] < 0 {
			return fmt.Errorf("resource %q is %s", name, request.Bundle[name])
		}
	}
	return nil
}
