package cli

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

// validated is a flag that refuses some values. It does so when they are set, while the name of the flag, the file or
// the variable is still known.
type validated struct {
	pflag.Value
	// want says in errors which values are right.
	want string
	// valid reports whether the value that is set is right.
	valid func() bool
}

// Validate lets a flag that is defined refuse values.
func Validate(flags *pflag.FlagSet, name, want string, valid func() bool) {
	f := flags.Lookup(name)
	of := validated{f.Value, want, valid}
	f.Value = &of
	if list, ok := of.Value.(pflag.SliceValue); ok {
		f.Value = &validatedList{of, list}
	}
}

// Set sets a value that is right.
func (c *validated) Set(text string) error { return c.afterSet(c.Value.Set(text)) }

func (c *validated) afterSet(err error) error {
	if err == nil && !c.valid() {
		err = fmt.Errorf("want %s", c.want)
	}
	return err
}

func (c *validated) wants() string { return c.want }

// validatedList is a validated flag of several values.
type validatedList struct {
	validated
	list pflag.SliceValue
}

// Append adds an item.
func (c *validatedList) Append(item string) error { return c.afterSet(c.list.Append(item)) }

// Replace sets all items.
func (c *validatedList) Replace(items []string) error { return c.afterSet(c.list.Replace(items)) }

// GetSlice returns the items.
func (c *validatedList) GetSlice() []string { return c.list.GetSlice() }

// ValidateString lets a flag accept what the function reports to be right.
func ValidateString(flags *pflag.FlagSet, name string, value *string, want string, valid func(string) bool) {
	Validate(flags, name, want, func() bool { return valid(*value) })
}

// ValidateAddress lets a flag accept host:port, or nothing.
func ValidateAddress(flags *pflag.FlagSet, name string, value *string) {
	ValidateString(
		flags,
		name,
		value,
		"host:port such as 127.0.0.1:8090, the port a number, or nothing",
		func(text string) bool {
			_, port, err := net.SplitHostPort(text)
			_, number := strconv.ParseUint(port, 10, 16)
			return text == "" || err == nil && number == nil
		},
	)
}

// ValidateDuration gives a flag bounds.
func ValidateDuration(flags *pflag.FlagSet, name string, value *time.Duration, least, most time.Duration) {
	Validate(flags, name,
		fmt.Sprintf("a duration such as 300ms, 90s or 1h30m, from %s to %s", ShortDuration(least), ShortDuration(most)),
		Within(value, least, most))
}

// Within returns a check that a value is within bounds; NaN never is.
func Within[T cmp.Ordered](value *T, least, most T) func() bool {
	return func() bool { return *value >= least && *value <= most }
}

// ShortDuration writes a duration without zeros at its end.
func ShortDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []struct{ unit, none string }{{"m", "0s"}, {"h", "0m"}} {
		if strings.HasSuffix(text, zero.unit+zero.none) {
			text = strings.TrimSuffix(text, zero.none)
		}
	}
	return text
}

// IsNamespace reports whether a namespace can have the name.
func IsNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// WantNamespace says in errors what the name of a namespace looks like.
const WantNamespace = "a string, the name of a namespace: at most 63 of a to z, 0 to 9 and -"
