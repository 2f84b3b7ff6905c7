package cli

import (
	"fmt"
	"net"
	"slices"
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
	of := validated{Value: f.Value, want: want, valid: valid}
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

// The functions below add a flag that rejects invalid values. Its default is the value that it has.

// Text adds a flag for a string that valid accepts; want describes such strings.
func Text(flags *pflag.FlagSet, value *string, name, usage, want string, valid func(string) bool) {
	flags.StringVar(value, name, *value, usage)
	Validate(flags, name, want, func() bool { return valid(*value) })
}

// Word adds a flag for one of a few words, which its usage ends with.
func Word(flags *pflag.FlagSet, value *string, name, usage string, words ...string) {
	if usage != "" {
		usage += ": "
	}
	flags.StringVar(value, name, *value, usage+oneOf(words))
	f := flags.Lookup(name)
	f.Value = &validated{f.Value, oneOf(words), func() bool { return slices.Contains(words, *value) }}
}

// oneOf returns "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Address adds a flag for host:port or nothing.
func Address(flags *pflag.FlagSet, value *string, name, usage string) {
	Text(flags, value, name, usage, "host:port such as 127.0.0.1:8090, the port a number, or nothing",
		func(text string) bool {
			_, port, err := net.SplitHostPort(text)
			_, number := strconv.ParseUint(port, 10, 16)
			return text == "" || err == nil && number == nil
		})
}

// Namespace adds a flag for the name of a namespace.
func Namespace(flags *pflag.FlagSet, value *string, name, usage string) {
	Text(flags, value, name, usage, "a string, the name of a namespace: at most 63 of a to z, 0 to 9 and -",
		IsNamespace)
}

// ClusterNamespace adds -n, a flag for the namespace of RayClusters or nothing.
func ClusterNamespace(flags *pflag.FlagSet, value *string, usage string) {
	flags.StringVarP(value, "namespace", "n", "", usage)
	Validate(flags, "namespace", "a DNS name: at most 63 of a to z, 0 to 9 and -",
		func() bool { return *value == "" || IsNamespace(*value) })
}

// Duration adds a flag for a duration within bounds.
func Duration(flags *pflag.FlagSet, value *time.Duration, name string, least, most time.Duration, usage string) {
	flags.DurationVar(value, name, *value, usage)
	Validate(flags, name,
		fmt.Sprintf("a duration such as 300ms, 90s or 1h30m, from %s to %s", ShortDuration(least), ShortDuration(most)),
		func() bool { return *value >= least && *value <= most })
}

// Number adds a flag for a number within bounds; NaN never is.
func Number[T int | float32 | float64](
	flags *pflag.FlagSet, value *T, name string, least, most float64, usage string,
) {
	kind := "a number"
	switch value := any(value).(type) {
	case *int:
		flags.IntVar(value, name, *value, usage)
		kind = "a whole number"
	case *float32:
		flags.Float32Var(value, name, *value, usage)
	case *float64:
		flags.Float64Var(value, name, *value, usage)
	}
	digits := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	Validate(flags, name, fmt.Sprintf("%s from %s to %s", kind, digits(least), digits(most)),
		func() bool { return float64(*value) >= least && float64(*value) <= most })
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
