package requests

import (
	"context"
	"errors"
	"testing"
)

// A write that was cut is no success, whatever retry.OnError makes of the error of a context.
func TestAWriteThatWasCutIsAnError(t *testing.T) {
	for _, cut := range []error{context.Canceled, context.DeadlineExceeded} {
		if err := unlessOvertaken(t.Context(), func() error { return cut }); !errors.Is(err, cut) {
			t.Errorf("got %v, want %v", err, cut)
		}
	}
}
