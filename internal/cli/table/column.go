package table

// columnKind says how a column is written if its cells do not fit.
type columnKind uint8

// The kinds of columns; any of them can be combined with kindWide.
const (
	// kindText is cut at its end.
	kindText columnKind = 0
	// kindName is cut in its middle: names of nodes and pods begin alike and differ at the end.
	kindName columnKind = 1 << iota
	// kindNumber is aligned to the right.
	kindNumber
	// kindProse continues in further lines and is never cut.
	kindProse
	// kindNote, for the last column only, is prose that moves below its row if less than leastNote is left for it.
	kindNote
	// kindWide columns are shown by -o wide alone.
	kindWide
)

// Column is the head of a column: its title, and how its cells are cut or aligned.
type Column struct {
	title string
	kind  columnKind
}

func (c Column) is(kind columnKind) bool { return c.kind&kind != 0 }

// Text returns a column whose cells are cut at their end.
func Text(title string) Column { return Column{title, kindText} }

// Name returns a column whose cells are cut in their middle: names of nodes and pods begin alike and differ at the end.
// In a continued table, the names identify a row.
func Name(title string) Column { return Column{title, kindName} }

// Number returns a column that is aligned to the right.
func Number(title string) Column { return Column{title, kindNumber} }

// Prose returns a column whose cells continue in further lines and are never cut.
func Prose(title string) Column { return Column{title, kindProse} }

// Note returns a column of prose that moves below its row if less than leastNote columns are left. It must be the last
// one.
func Note(title string) Column { return Column{title, kindNote} }

// Wide returns a column of text that -o wide alone shows.
func Wide(title string) Column { return Column{title, kindWide} }

// OnlyWide returns the column so that -o wide alone shows it.
func (c Column) OnlyWide() Column {
	c.kind |= kindWide
	return c
}
