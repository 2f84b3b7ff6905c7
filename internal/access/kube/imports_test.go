package kube

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestReviewsKnowAccessAlone(t *testing.T) {
	importtest.Only(t, "internal/access")
}
