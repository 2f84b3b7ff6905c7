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

// validated is a flag that rejects invalid values when they are set, while the name of the flag, the file or the
// variable is known.
type validated struct {
	pflag.Value
	// want describes valid values in errors.
	want string
	// valid reports whether the current value is valid.
	valid func() bool
}

// Validate makes a defined flag reject invalid values.
func Validate(flags *pflag.FlagSet, name, want string, valid func() bool) {
	f := flags.Lookup(name)
	of := validated{f.Value, want, valid}
	f.Value = &of
	if list, ok := of.Value.(pflag.SliceValue); ok {
		f.Value = &validatedList{of, list}
	}
}

// Set sets a valid value.
func (c *validated) Set(text string) error { return c.afterSet(c.Value.Set(text)) }

func (c *validated) afterSet(err error) error {
	if err == nil && !c.valid() {
		err = fmt.Errorf("want %s", c.want)
	}
	return err
}

func (c *validated) wants() string { return c.want }

// validatedList is a validated flag with several values.
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

// ValidateString makes a flag accept only values for which valid returns true.
func ValidateString(flags *pflag.FlagSet, name string, value *string, want string, valid func(string) bool) {
	Validate(flags, name, want, func() bool { return valid(*value) })
}

// ValidateAddress makes a flag accept host:port or nothing.
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

// ValidateDuration sets the bounds of a flag.
func ValidateDuration(flags *pflag.FlagSet, name string, value *time.Duration, least, most time.Duration) {
	Validate(flags, name,
		fmt.Sprintf("a duration such as 300ms, 90s or 1h30m, from %s to %s", ShortDuration(least), ShortDuration(most)),
		Within(value, least, most))
}

// Within returns a check that a value is within bounds; NaN never is.
func Within[T cmp.Ordered](value *T, least, most T) func() bool {
	return func() bool { return *value >= least && *value <= most }
}

// ShortDuration formats a duration without trailing zeros.
func ShortDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []struct{ unit, none string }{{"m", "0s"}, {"h", "0m"}} {
		if strings.HasSuffix(text, zero.unit+zero.none) {
			text = strings.TrimSuffix(text, zero.none)
		}
	}
	return text
}

// IsNamespace reports whether the name is valid for a namespace.
func IsNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// WantNamespace describes a namespace's name in errors.
const WantNamespace = "a string, the name of a namespace: at most 63 of a to z, 0 to 9 and -"
