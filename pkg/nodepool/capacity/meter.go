package capacity

import "time"

// Meter adds up what warm capacity has cost since the day of its budget began. It begins at 0 in each process.
type Meter struct {
	day     string
	spent   float64
	perHour float64
	at      time.Time
}

// longestGap bounds what one reading adds: nobody knows what was warm while a process did not look.
const longestGap = 10 * time.Minute

// Spent returns what has been spent on the day of a moment. Without a budget, days are those of UTC.
func (m *Meter) Spent(now time.Time, b *Budget) float64 {
	if b == nil {
		b = &Budget{}
	}
	if day := b.Day(now); day != m.day {
		m.day, m.spent = day, 0
	} else if !m.at.IsZero() {
		m.spent += m.perHour * min(max(now.Sub(m.at), 0), longestGap).Hours()
	}
	m.at = now
	return m.spent
}

// Charge sets what the capacity costs per hour from now on.
func (m *Meter) Charge(perHour float64) { m.perHour = perHour }
