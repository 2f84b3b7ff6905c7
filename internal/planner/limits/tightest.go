package limits

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Tightest returns how many more pods a group may have, and names the limit: the bound and what counts toward it.
func (w *Writer) Tightest(i int, given []int64) (model.Reason, int64) {
	g := &w.Groups[i]
	if reason, ok := w.Limit(i, given); ok {
		return reason, 0
	}
	room := max(g.MaxPods-g.Current-given[i], 0)
	reason := model.Reason{
		Code:    model.CodeAtMax,
		Message: fmt.Sprintf("its maximum is %d (%s)", g.MaxPods, w.having(i, given[i])),
	}
	if n := w.Spare(given); n < room {
		room, reason = n, model.Reason{
			Code:    model.CodeMaxWorkers,
			Message: fmt.Sprintf("all groups together may have %d (%s)", w.Bound, w.havingAll(given)),
		}
	}
	if n := w.QuotaRoom(i, given); n < room {
		room, reason = n, model.Reason{Code: model.CodeQuota, Message: w.quotaOf(i, given)}
	}
	if n := w.PoolRoom(i, given); n < room {
		room, reason = n, w.poolReason(i, given, n)
	}
	room -= room % g.Hosts
	reason.Message = fmt.Sprintf("group %s can add only %s: %s", g.Name, phrase.Pods(room), reason.Message)
	return reason, room
}

// poolReason describes why the nodes have room for only so many more pods.
func (w *Writer) poolReason(i int, given []int64, room int64) model.Reason {
	if w.PoolRoomUnpromised(i, given) > room {
		return model.Reason{Code: model.CodePoolPromised,
			Message: "more room on its nodes is promised to " + w.promised(i)}
	}
	return model.Reason{
		Code: model.CodePoolCeiling,
		Message: fmt.Sprintf(
			"its node pools hold at most %d of its pods %s (%s)%s",
			w.Ceilings.Most[i],
			strings.Replace(w.beside(i), "use it", "use them", 1),
			w.having(i, given[i]),
			w.rivals(i, given),
		),
	}
}

// RoomFor describes what a group below all of its limits can do for bundles that are not served together.
func (w *Writer) RoomFor(i int, given []int64, bundles int64) model.Reason {
	reason, room := w.Tightest(i, given)
	if room >= bundles {
		return model.Reason{Code: model.CodeNotInFull, Message: "has room for its part"}
	}
	return reason
}

// havingAll returns the number of pods of all groups together.
func (w *Writer) havingAll(given []int64) string {
	var have int64
	for i := range w.Groups {
		have += w.Groups[i].Current
	}
	text := fmt.Sprintf("have %d", have)
	if launching := vector.Sum(given); launching > 0 {
		text += fmt.Sprintf(", launching %d", launching)
	}
	return text
}
