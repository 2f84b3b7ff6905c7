package scenario

import (
	"heliostat.dev/heliostat/pkg/nodepool/departure"
)

// departure reads SIGN "message" [reclaimed] [noticed TIME] [until TIME].
func (r *reader) departure(certain bool) *departure.Notice {
	n := &departure.Notice{Sign: departure.Sign(r.text("a sign")), Message: r.text("what was seen"), Certain: certain}
	n.Reclaimed = r.accept("reclaimed")
	if r.accept("noticed") {
		n.Since = r.moment("noticed")
	}
	if r.accept("until") {
		n.Deadline = r.moment("until")
	}
	return n
}

func (w *words) departure(n *departure.Notice) {
	if n == nil {
		return
	}
	word := "may-go"
	if n.Certain {
		word = "goes"
	}
	w.add(word, quote(string(n.Sign)), quote(n.Message))
	w.when(n.Reclaimed, "reclaimed")
	w.when(!n.Since.IsZero(), "noticed", momentText(n.Since))
	w.when(!n.Deadline.IsZero(), "until", momentText(n.Deadline))
}
