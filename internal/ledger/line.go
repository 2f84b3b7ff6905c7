package ledger

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// second is a time in seconds since 1970.
type second float64

func secondOf(t time.Time) second { return second(float64(t.UnixMilli()) / 1000) }

// in returns the number of the period of that length that the moment is in.
func (s second) in(length second) int64 { return int64(math.Floor(float64(s / length))) }

// The lengths of periods.
const (
	hour second = 3600
	day         = 24 * hour
)

// bucket is what was spent between two moments. New buckets lie within one hour.
type bucket struct {
	from, until second
	Amount
}

// line is what one account spent over time: buckets in order, which do not overlap.
type line struct {
	Account
	buckets []bucket
}

// line returns the line of an account. Beyond the limit, groups and owners become Other; causes stay apart.
func (c *account) line(of Account, most int) *line {
	for i := range c.lines {
		if c.lines[i].Account == of {
			return &c.lines[i]
		}
	}
	if of.Job != "" && of.Job != Other {
		c.makeRoomForJob(most / 2)
	}
	if other := (Account{Group: Other, Owner: Other, Cause: of.Cause}); len(c.lines) >= most && of != other {
		return c.line(other, most)
	}
	c.lines = append(c.lines, line{Account: of})
	return &c.lines[len(c.lines)-1]
}

// makeRoomForJob adds up the job that has used nothing for the longest time in Other, if there are too many.
func (c *account) makeRoomForJob(most int) {
	oldest, jobs := -1, 0
	for i := range c.lines {
		l := &c.lines[i]
		if l.Job == "" || l.Job == Other {
			continue
		}
		if jobs++; oldest < 0 || l.until() < c.lines[oldest].until() {
			oldest = i
		}
	}
	if jobs < most {
		return
	}
	gone := c.lines[oldest]
	c.lines = slices.Delete(c.lines, oldest, oldest+1)
	other := gone.Account
	other.Job = Other
	c.line(other, len(c.lines)+1).absorb(&gone)
}

// until returns the end of the last bucket; 0 if there is none.
func (l *line) until() second {
	if n := len(l.buckets); n > 0 {
		return l.buckets[n-1].until
	}
	return 0
}

// add adds an amount evenly over a time.
func (l *line) add(a Amount, from, until second, limits Limits) {
	for from.in(hour) < until.in(hour) {
		end := second(from.in(hour)+1) * hour
		part := float64((end - from) / (until - from))
		l.put(bucket{from, end, a.times(part)}, limits)
		a, from = a.times(1-part), end
	}
	l.put(bucket{from, max(from, until), a}, limits)
}

// put adds a bucket of less than an hour.
func (l *line) put(b bucket, limits Limits) {
	if b.Amount == (Amount{}) {
		return
	}
	at := len(l.buckets)
	for at > 0 && l.buckets[at-1].from > b.from {
		at--
	}
	for _, i := range []int{at - 1, at} {
		if i < 0 || i == len(l.buckets) {
			continue
		}
		near := &l.buckets[i]
		if near.from.in(hour) == b.from.in(hour) || near.from <= b.from && b.until <= near.until {
			near.join(b)
			return
		}
	}
	l.buckets = slices.Insert(l.buckets, at, b)
	l.age(b.from, limits)
}

// join adds another bucket, and covers the time of both.
func (b *bucket) join(other bucket) {
	b.from, b.until = min(b.from, other.from), max(b.until, other.until)
	b.Amount = b.Plus(other.Amount)
}

// age joins buckets that are older than Hours into days, and drops those that are older than Days.
func (l *line) age(now second, limits Limits) {
	hourly, daily := now-second(limits.Hours)*hour, now-second(limits.Days)*day
	l.buckets = slices.DeleteFunc(l.buckets, func(b bucket) bool { return b.until <= daily })
	l.buckets = joined(l.buckets,
		func(a, b bucket) bool { return b.until <= hourly && a.from.in(day) == b.from.in(day) })
}

// joined joins neighbors that belong together.
func joined(buckets []bucket, together func(a, b bucket) bool) []bucket {
	kept := buckets[:0]
	for _, b := range buckets {
		if n := len(kept); n > 0 && together(kept[n-1], b) {
			kept[n-1].join(b)
			continue
		}
		kept = append(kept, b)
	}
	return kept
}

// absorb adds all buckets of another line.
func (l *line) absorb(from *line) {
	all := slices.Concat(l.buckets, from.buckets)
	slices.SortStableFunc(all, func(a, b bucket) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.until, a.until))
	})
	l.buckets = joined(all, func(a, b bucket) bool { return b.from < a.until || a.from.in(hour) == b.from.in(hour) })
}

// within returns what the line has spent from a moment on. A bucket that the moment cuts counts in proportion.
func (l *line) within(from second) (sum Amount) {
	for i := len(l.buckets) - 1; i >= 0; i-- {
		b := &l.buckets[i]
		switch {
		case b.from >= from:
			sum = sum.Plus(b.Amount)
		case b.until > from:
			sum = sum.Plus(b.times(float64((b.until - from) / (b.until - b.from))))
		}
	}
	return sum
}
