package arrival

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Samples are the times of one group in whole seconds, the latest last, as a process stores them for the next one.
type Samples struct {
	Node  []int64 `json:"node,omitempty"`
	Join  []int64 `json:"join,omitempty"`
	Whole []int64 `json:"whole,omitempty"`
}

// longestSample bounds what is read: no worker that is any use starts for a week.
const longestSample = 7 * 24 * time.Hour

// mostKept bounds the stored text in bytes. It is part of a RayCluster, whose annotations have 256 KiB together.
const mostKept = 16 << 10

// Read reads what Keep returned, by group.
func Read(text string) (map[string]Samples, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var groups map[string]Samples
	if err := decoder.Decode(&groups); err != nil {
		return nil, fmt.Errorf("reading start times: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading start times: want one JSON object, and nothing after it")
	}
	for name, s := range groups {
		for _, leg := range [][]int64{s.Node, s.Join, s.Whole} {
			if len(leg) > mostSamples {
				return nil, fmt.Errorf("reading start times: group %s has %d of them, want at most %d", name, len(leg),
					mostSamples)
			}
			for _, took := range leg {
				if took < 0 || took > int64(longestSample.Seconds()) {
					return nil, fmt.Errorf("reading start times: group %s: %d, want 0 to %.0f seconds", name, took,
						longestSample.Seconds())
				}
			}
		}
	}
	return groups, nil
}

// Keep returns the times of all groups as text for the next process; empty if there are none. Groups that would make it
// too long are left out, the last by name first.
func (h *History) Keep() string {
	groups := map[string]Samples{}
	length := len("{}")
	for _, name := range slices.Sorted(maps.Keys(h.groups)) {
		s := h.groups[name].samples()
		text, err := json.Marshal(map[string]Samples{name: s})
		if length += len(text); err != nil || len(s.Whole) == 0 || length > mostKept {
			length -= len(text)
			continue
		}
		groups[name] = s
	}
	if len(groups) == 0 {
		return ""
	}
	text, err := json.Marshal(groups)
	if err != nil {
		return ""
	}
	return string(text)
}

func (l *legs) samples() Samples {
	whole := func(times []time.Duration) (seconds []int64) {
		for _, took := range times {
			seconds = append(seconds, int64(min(took, longestSample).Round(time.Second)/time.Second))
		}
		return seconds
	}
	return Samples{whole(l.node), whole(l.join), whole(l.whole)}
}

func (s Samples) legs() *legs {
	times := func(seconds []int64) (times []time.Duration) {
		for _, took := range seconds {
			times = append(times, time.Duration(took)*time.Second)
		}
		return times
	}
	return &legs{times(s.Node), times(s.Join), times(s.Whole)}
}
