package cli

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// validated is a flag that rejects invalid values when they are set, while the name of the flag or the variable is
// known.
type validated struct {
	pflag.Value
	// want describes valid values in errors.
	want string
	// valid reports whether the current value is valid.
	valid func() bool
}

// validate makes a defined flag reject invalid values.
func validate(flags *pflag.FlagSet, name, want string, valid func() bool) {
	f := flags.Lookup(name)
	f.Value = &validated{Value: f.Value, want: want, valid: valid}
}

// Set sets a valid value.
func (c *validated) Set(text string) error {
	if err := c.Value.Set(text); err != nil || !c.valid() {
		return errors.New("want " + c.want)
	}
	return nil
}

// FlagError says what a flag of a type of pflag takes, where pflag has the error of a function of Go, and what to use
// instead of a flag that was removed. It returns other errors as they are.
func FlagError(_ *cobra.Command, err error) error {
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is {
		if instead := removed[unknown.GetSpecifiedName()]; instead != "" {
			return fmt.Errorf("%w: it was removed; %s", err, instead)
		}
	}
	invalid, is := errors.AsType[*pflag.InvalidValueError](err)
	if !is {
		return err
	}
	flag := invalid.GetFlag()
	want := map[string]string{
		"bool": "true or false", "duration": "a duration such as 300ms, 90s or 1h30m", "int": "a whole number",
		"int32": "a whole number from -2147483648 to 2147483647", "int64": "a whole number", "float64": "a number",
	}[flag.Value.Type()]
	if _, says := flag.Value.(*validated); says || want == "" {
		return err
	}
	return fmt.Errorf("invalid argument %q for %q flag: want %s", invalid.GetValue(), "--"+flag.Name, want)
}

// The functions below add a flag that rejects invalid values. Its default is the value that it has.

// Text adds a flag for a string that valid accepts; want describes such strings.
func Text(flags *pflag.FlagSet, value *string, name, usage, want string, valid func(string) bool) {
	flags.StringVar(value, name, *value, usage)
	validate(flags, name, want, func() bool { return valid(*value) })
}

// Word adds a flag for one of a few words, which its usage ends with.
func Word(flags *pflag.FlagSet, value *string, name, usage string, words ...string) {
	if usage != "" {
		usage += ": "
	}
	flags.StringVar(value, name, *value, usage+oneOf(words))
	validate(flags, name, oneOf(words), func() bool { return slices.Contains(words, *value) })
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
	validate(flags, "namespace", "a DNS name: at most 63 of a to z, 0 to 9 and -",
		func() bool { return *value == "" || IsNamespace(*value) })
}

// Duration adds a flag for a duration within bounds.
func Duration(flags *pflag.FlagSet, value *time.Duration, name string, least, most time.Duration, usage string) {
	flags.DurationVar(value, name, *value, usage)
	validate(flags, name,
		fmt.Sprintf("a duration such as 300ms, 90s or 1h30m, from %v to %v", least, most),
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
	validate(flags, name, fmt.Sprintf("%s from %s to %s", kind, digits(least), digits(most)),
		func() bool { return float64(*value) >= least && float64(*value) <= most })
}

// IsNamespace reports whether the name is valid for a namespace.
func IsNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }
