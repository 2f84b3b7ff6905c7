package main

import (
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
)

func TestAnAnswerThatRayHasNoPartInSaysSo(t *testing.T) {
	r := newRemote(t)
	r.holding()
	asks := [][]string{
		{"explain", "ml/llm", "--request", "serve"},
		{"explain", "ml/llm", "--demand", `{"GPU": 1}`},
		{"request", "ml/llm", "--id", "serve", "--wait", "1s"},
	}
	for name, test := range map[string]struct {
		at        time.Time
		err, want string
	}{
		"never read": {time.Time{}, "the head pod is not ready yet", "autoscaler: note: the state of Ray in ml/llm has not been read yet: the head pod is not ready yet\n"},
		"not read now": {time.Now().Add(-9*24*time.Hour - time.Hour), "the head does not answer",
			"autoscaler: note: the state of Ray in ml/llm was last read 9d ago, so this answer is that old: the head does not answer\n"},
		"read": {time.Now(), "", ""},
	} {
		r.mu.Lock()
		r.view.Read, r.view.Err = addon.ReadAt(test.at), test.err
		r.mu.Unlock()
		for _, args := range asks {
			_, _, errOut := command(t, "", append([]string{"autoscaler"}, args...)...)
			if test.want == "" && strings.Contains(errOut, "note:") || !strings.Contains(errOut, test.want) {
				t.Errorf("%s: %q tells %q, want %q", name, args, errOut, test.want)
			}
		}
	}
}
