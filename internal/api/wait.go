package api

import (
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// maxWait is how long a long poll lasts at most.
const maxWait = time.Minute

// parseWait reads the duration of a long poll, such as 30s. Empty means none.
func parseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseUint(strings.TrimSuffix(text, "s"), 10, 8)
	if wait := time.Duration(seconds) * time.Second; err == nil && wait <= maxWait {
		return wait, nil
	}
	expected := "seconds such as 30s, at most 60s"
	return 0, invalidFields([]apiv1.FieldError{{Field: "wait", Value: shorten(text), Expected: expected}})
}
