package main

import (
	"context"
	"time"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

// xidSource is all that the agent needs in order to hear of XIDs.
type xidSource interface {
	// WatchXIDs has the driver tell of XIDs and returns the cards of which it tells none.
	WatchXIDs() (unwatched []int, err error)
	// NextXID waits so long for the next one.
	NextXID(timeout time.Duration) (event gpuinfo.XIDEvent, happened bool, err error)
}

// faults are the first fatal XID of each card, by its index. They stay until the agent ends: a card that had one goes
// on answering as a well one does, so an answer proves nothing. And a reset, which would, is refused while anything
// holds the driver open, as this agent does (docs/reference/facts.md#reset-of-a-card): whoever resets a card ends the
// agent first, and the next one begins without faults.
type faults map[int]gpuinfo.XIDEvent

// mark adds what is known of a card's fault to what the driver says of the card.
func (f faults) mark(card *nodegpu.AgentCard) {
	fault, known := f[card.Index]
	if !known {
		return
	}
	problem := fault.String()
	if !card.Healthy && card.Problem != "" {
		problem += "; " + card.Problem
	}
	card.Healthy, card.Problem = false, problem
}

// watch begins to hear of XIDs. Without them the agent still reads what cards answer.
func (a *agent) watch() {
	unwatched, err := a.driver.WatchXIDs()
	if err != nil {
		a.log.Warn("the driver does not report XIDs; only cards that do not answer are detected as broken", "error",
			err)
		return
	}
	a.watching = true
	if len(unwatched) > 0 {
		a.log.Warn("the driver does not report XIDs for some cards", "cards", unwatched)
	}
}

// attention is how long the driver is asked in one call, in which the agent cannot be told to end.
const attention = time.Second

// wait returns when the next reading is due: after the interval, or at once after a fatal XID. It is false when ctx
// ended.
func (a *agent) wait(ctx context.Context, interval time.Duration) bool {
	due := time.NewTimer(interval)
	defer due.Stop()
	for hearing := a.watching; hearing; {
		select {
		case <-ctx.Done():
			return false
		case <-due.C:
			return true
		default:
		}
		event, happened, err := a.driver.NextXID(attention)
		if err != nil {
			// At once it would say so again, as while a card is lost; the next reading tells of that.
			a.log.Warn("the driver does not report XIDs until the next reading", "error", err)
			hearing = false
		}
		if happened && a.hear(event) {
			return true
		}
	}
	select {
	case <-ctx.Done():
		return false
	case <-due.C:
		return true
	}
}

// heard is an XID of a card; -1 is a card that the driver did not name.
type heard struct {
	card   int
	number uint64
}

// hear logs an XID, each once between two readings because an application at fault may bring thousands, and reports
// whether it makes a card unhealthy that was not.
func (a *agent) hear(event gpuinfo.XIDEvent) (changed bool) {
	key := heard{-1, event.Number}
	if event.Card != nil {
		key.card = *event.Card
	}
	if !a.heard[key] {
		a.log.Warn("the driver reports an XID", "card", key.card, "xid", event.String(), "fatal", event.Fatal)
		if a.heard == nil {
			a.heard = map[heard]bool{}
		}
		a.heard[key] = true
	}
	_, known := a.faults[key.card]
	if !event.Fatal || event.Card == nil || known {
		return false
	}
	if a.faults == nil {
		a.faults = faults{}
	}
	a.faults[key.card] = event
	return true
}
