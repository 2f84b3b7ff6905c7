package printer

// columnKind says how a column is written if its cells do not fit.
type columnKind uint8

// The kinds of columns; any of them can be combined with kindWide.
const (
	// kindText columns are truncated at the end.
	kindText columnKind = 0
	// kindName columns are truncated in the middle: names of nodes and pods begin alike and differ at the end.
	kindName columnKind = 1 << iota
	// kindNumber columns are aligned to the right.
	kindNumber
	// kindProse columns wrap and are never truncated.
	kindProse
	// kindNote, for the last column only, is prose that moves below its row if less than leastNote is left for it.
	kindNote
	// kindWide columns appear only with -o wide.
	kindWide
)

// Column is the head of a column: its title, and how its cells are truncated or aligned.
type Column struct {
	title string
	kind  columnKind
}

func (c Column) is(kind columnKind) bool { return c.kind&kind != 0 }

// Text returns a column whose cells are truncated at the end.
func Text(title string) Column { return Column{title, kindText} }

// Name returns a column whose cells are truncated in the middle: names of nodes and pods begin alike and differ at the
// end. In a continued table, the names identify a row.
func Name(title string) Column { return Column{title, kindName} }

// Number returns a column that is aligned to the right.
func Number(title string) Column { return Column{title, kindNumber} }

// Prose returns a column whose cells wrap and are never truncated.
func Prose(title string) Column { return Column{title, kindProse} }

// Note returns a column of prose that moves below its row if less than leastNote columns are left. It must be the last
// one.
func Note(title string) Column { return Column{title, kindNote} }

// Wide returns a column of text that appears only with -o wide.
func Wide(title string) Column { return Column{title, kindWide} }

// OnlyWide returns the column so that it appears only with -o wide.
func (c Column) OnlyWide() Column {
	c.kind |= kindWide
	return c
}
