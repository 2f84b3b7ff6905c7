package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

func TestStorageThatWentBackEndsTheProcess(t *testing.T) {
	unread := errors.New("connection refused")
	tests := map[string]struct {
		answers []any // a version, or why there is none
		want    string
	}{
		"it grows":                            {[]any{"7", "9", "9", "10"}, ""},
		"it was lost":                         {[]any{"844", "12", "13"}, "from version 844 to 13"},
		"it was restored while nobody looked": {[]any{"844", unread, unread, "800", "800"}, "from version 844 to 800"},
		"one answer is late":                  {[]any{"844", "843", "845", "846"}, ""},
		"versions are no numbers":             {[]any{"b", "a", "a"}, ""},
		"it was not read yet":                 {[]any{unread, "5", "6"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answers := test.answers
			r := &storageGuard{version: func(context.Context) (string, error) {
				next := answers[0]
				answers = answers[1:]
				if err, failed := next.(error); failed {
					return "", err
				}
				return next.(string), nil
			}}
			var err error
			for err == nil && len(answers) > 0 {
				err = r.check(t.Context())
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("the look says %v, want %q", err, test.want)
			}
			if len(answers) > 0 {
				t.Errorf("%v was not asked for any more", answers)
			}
		})
	}
}

// TestARayClusterOlderThanTheKnownOneEndsTheProcess has a storage that has passed the version of the last check again,
// so that checks find nothing.
func TestARayClusterOlderThanTheKnownOneEndsTheProcess(t *testing.T) {
	for stored, want := range map[string]string{"6": "from version 7 to 6", "7": "", "8": ""} {
		server := &apiServer{stored: rayClusterOf(t, twoGroups, stored)}
		m := managerOf(t, server, rayClusterOf(t, twoGroups, "7"))
		m.storage.version = func(context.Context) (string, error) { return "9", nil }
		for range 2 { // a second proof waits for nobody
			if _, err := m.getRayCluster(t.Context(), m.rayClusters, llm); err != nil {
				t.Fatal(err)
			}
		}
		if want == "" {
			if n := len(m.storage.proof); n > 0 {
				t.Errorf("the stored version is %s, 7 is known: %d proofs, want none", stored, n)
			}
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.storage.Start(ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the stored version is %s, 7 is known: %v, want %q", stored, err, want)
		}
	}
}

func TestAPodOlderThanTheKnownOneProvesThatTheStorageWentBack(t *testing.T) {
	pod := func(name, version string) *decode.Pod { return &decode.Pod{Name: name, Version: version} }
	known := []*decode.Pod{pod("a", "7"), pod("gone", "9")}
	for version, want := range map[string]int{"6": 1, "7": 0, "8": 0} {
		guard := &storageGuard{proof: make(chan error, 1)}
		guard.comparePods(known, []*decode.Pod{pod("a", version), pod("new", "1")})
		if got := len(guard.proof); got != want {
			t.Errorf("version %s, 7 is known: %d proofs, want %d", version, got, want)
		}
	}
}
