package main

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// checked is a flag of whose values not all make sense. It refuses those where they are set, so that what names the flag, the file or the variable
// is known still.
type checked struct {
	pflag.Value
	// want says for errors what values there are.
	want string
	// takes reports whether what is set is one of them.
	takes func() bool
}

// check lets a flag that is there refuse values.
func check(flags *pflag.FlagSet, name, want string, takes func() bool) {
	f := flags.Lookup(name)
	of := checked{f.Value, want, takes}
	f.Value = &of
	if list, ok := of.Value.(pflag.SliceValue); ok {
		f.Value = &checkedList{of, list}
	}
}

// Set takes a value that makes sense.
func (c *checked) Set(text string) error { return c.after(c.Value.Set(text)) }

func (c *checked) after(err error) error {
	if err == nil && !c.takes() {
		err = fmt.Errorf("want %s", c.want)
	}
	return err
}

func (c *checked) wants() string { return c.want }

// checkedList is a checked flag of several values.
type checkedList struct {
	checked
	list pflag.SliceValue
}

// Append adds an item.
func (c *checkedList) Append(item string) error { return c.after(c.list.Append(item)) }

// Replace sets all items.
func (c *checkedList) Replace(items []string) error { return c.after(c.list.Replace(items)) }

// GetSlice is what is set.
func (c *checkedList) GetSlice() []string { return c.list.GetSlice() }

// checkWord lets a flag take what a function reports to be right.
func checkWord(flags *pflag.FlagSet, name string, value *string, want string, takes func(string) bool) {
	check(flags, name, want, func() bool { return takes(*value) })
}

// checkAddress lets a flag take where to listen or to call, or nothing.
func checkAddress(flags *pflag.FlagSet, name string, value *string) {
	checkWord(flags, name, value, "host:port such as 127.0.0.1:8090, the port a number, or nothing", func(text string) bool {
		_, port, err := net.SplitHostPort(text)
		_, number := strconv.ParseUint(port, 10, 16)
		return text == "" || err == nil && number == nil
	})
}

// checkDuration gives a flag bounds.
func checkDuration(flags *pflag.FlagSet, name string, value *time.Duration, least, most time.Duration) {
	check(flags, name, fmt.Sprintf("a duration such as 300ms, 90s or 1h30m, from %s to %s", rounded(least), rounded(most)), within(value, least, most))
}

// within reports whether a value is in its bounds; what is no number never is.
func within[T cmp.Ordered](value *T, least, most T) func() bool {
	return func() bool { return *value >= least && *value <= most }
}

// rounded is a duration without the zeros that it ends in.
func rounded(d time.Duration) string {
	text := d.String()
	for _, zero := range []struct{ unit, none string }{{"m", "0s"}, {"h", "0m"}} {
		if strings.HasSuffix(text, zero.unit+zero.none) {
			text = strings.TrimSuffix(text, zero.none)
		}
	}
	return text
}

// isNamespace reports whether a namespace can have the name.
func isNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

const wantNamespace = "a string, the name of a namespace: at most 63 of a to z, 0 to 9 and -"
