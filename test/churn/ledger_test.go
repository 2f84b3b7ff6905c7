package main

import (
	"testing"
	"time"
)

// at returns a moment of the tests, in seconds.
func at(seconds float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestWorkersBeyondDemandAreCounted(t *testing.T) {
	busy := worker{group: "gpu", pod: "a", created: at(0), alive: at(10)}
	full := item{group: "gpu", size: 4, asked: at(0), started: at(11), pod: "a"}
	for _, test := range []struct {
		name   string
		ledger ledger
		launch launch
		want   int
	}{
		{
			name:   "one task needs one worker",
			ledger: ledger{items: []item{{group: "gpu", size: 4, asked: at(20)}}},
			launch: launch{group: "gpu", at: at(21), from: 0, to: 1},
		},
		{
			name:   "one task does not need two",
			ledger: ledger{items: []item{{group: "gpu", size: 4, asked: at(20)}}},
			launch: launch{group: "gpu", at: at(21), from: 0, to: 2},
			want:   1,
		},
		{
			name:   "two halves share a worker",
			ledger: ledger{items: []item{{group: "gpu", size: 2, asked: at(20)}, {group: "gpu", size: 2, asked: at(20)}}},
			launch: launch{group: "gpu", at: at(21), from: 0, to: 2},
			want:   1,
		},
		{
			name:   "a worker on its way is enough",
			ledger: ledger{items: []item{{group: "gpu", size: 4, asked: at(20)}}},
			launch: launch{group: "gpu", at: at(21), from: 1, to: 2},
			want:   1,
		},
		{
			name:   "a full worker is no room",
			ledger: ledger{workers: []worker{busy}, items: []item{full, {group: "gpu", size: 1, asked: at(20)}}},
			launch: launch{group: "gpu", at: at(21), from: 1, to: 2},
		},
		{
			name: "work that was placed a second ago is counted twice by who launches for it",
			ledger: ledger{
				workers: []worker{busy},
				items:   []item{{group: "gpu", size: 4, asked: at(20), started: at(20.5), pod: "a"}},
			},
			launch: launch{group: "gpu", at: at(21.2), from: 1, to: 2},
			want:   1,
		},
		{
			name: "a worker that leaves is no room",
			ledger: ledger{
				workers: []worker{{group: "gpu", pod: "a", created: at(0), alive: at(10), leaving: at(20)}},
				items:   []item{{group: "gpu", size: 4, asked: at(20.1)}},
			},
			launch: launch{group: "gpu", at: at(20.9), from: 0, to: 1},
		},
		{
			name:   "demand that ended long before needs nothing",
			ledger: ledger{items: []item{{group: "gpu", size: 4, asked: at(10), ended: at(15)}}},
			launch: launch{group: "gpu", at: at(21), from: 0, to: 1},
			want:   1,
		},
		{
			name:   "another group's demand needs nothing here",
			ledger: ledger{items: []item{{group: "cpu", size: 4, asked: at(20)}}},
			launch: launch{group: "gpu", at: at(21), from: 0, to: 1},
			want:   1,
		},
		{
			name:   "a request counts workers whatever they do",
			ledger: ledger{workers: []worker{busy}, items: []item{full}, requests: []request{{group: "gpu", workers: 2, asked: at(20)}}},
			launch: launch{group: "gpu", at: at(21), from: 1, to: 2},
		},
		{
			name:   "a request that is served needs nothing",
			ledger: ledger{workers: []worker{busy}, items: []item{full}, requests: []request{{group: "gpu", workers: 1, asked: at(20)}}},
			launch: launch{group: "gpu", at: at(21), from: 1, to: 2},
			want:   1,
		},
	} {
		if got := test.ledger.beyond(test.launch); got != test.want {
			t.Errorf("%s: %d workers beyond demand, want %d", test.name, got, test.want)
		}
	}
}
