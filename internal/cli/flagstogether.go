package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The annotations of the flags that MarkFlagsMutuallyExclusive and MarkFlagsRequiredTogether name. Each value is the
// names of one group.
const (
	exclusiveKey = "cobra_annotation_mutually_exclusive"
	togetherKey  = "cobra_annotation_required_if_others_set"
)

// CheckFlagsTogether checks, after the file and the environment have set flags, that none was set to nothing, and that
// flags that exclude or require each other were not or were set together. Cobra checks groups too, but later, and its
// error names neither a value nor what would be right.
func CheckFlagsTogether(c *cobra.Command) {
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if before != nil {
			if err := before(c, args); err != nil {
				return err
			}
		}
		if err := errors.Join(notEmpty(c.Flags()), flagsTogether(c.Flags())); err != nil {
			return BadInput(fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
		}
		return nil
	}
}

// notEmpty returns an error about string flags that were set to nothing, often by an unset variable of a shell.
// The flags that find the server may be empty, as those of kubectl may, and so may those that a file or the environment
// can set: a manifest switches them off that way.
func notEmpty(flags *pflag.FlagSet) error {
	if flags.Lookup(ConfigFlag) != nil {
		return nil
	}
	var errs []error
	flags.Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" &&
			strings.Join(f.Annotations[groupKey], "") != findFlags {
			errs = append(errs, fmt.Errorf("--%s %q: want a value, or the flag left out", f.Name, ""))
		}
	})
	return errors.Join(errs...)
}

// flagsTogether returns an error about the groups that the flags that were set do not keep to.
func flagsTogether(flags *pflag.FlagSet) error {
	var errs []error
	done := map[string]bool{}
	check := func(key string, fault func(given, missing []string) error) func(*pflag.Flag) {
		return func(f *pflag.Flag) {
			for _, group := range f.Annotations[key] {
				if !done[key+group] {
					done[key+group] = true
					errs = append(errs, fault(splitGiven(flags, group)))
				}
			}
		}
	}
	flags.Visit(check(exclusiveKey, func(given, _ []string) error {
		if len(given) < 2 {
			return nil
		}
		return fmt.Errorf("%s exclude each other: want one of them", conjunction(given))
	}))
	flags.Visit(check(togetherKey, func(given, missing []string) error {
		if len(missing) == 0 {
			return nil
		}
		return fmt.Errorf("%s: want also %s", conjunction(given), conjunction(missing))
	}))
	return errors.Join(errs...)
}

// splitGiven divides a group into the flags that were set, with their values, and the others.
func splitGiven(flags *pflag.FlagSet, group string) (given, missing []string) {
	for _, name := range strings.Fields(group) {
		switch f := flags.Lookup(name); {
		case f.Changed:
			given = append(given, withValue(f))
		default:
			missing = append(missing, "--"+name)
		}
	}
	return given, missing
}

// longestValue limits the values in these errors, in bytes: a policy may be long.
const longestValue = 40

// withValue returns a flag as it was set.
func withValue(f *pflag.Flag) string {
	value := f.Value.String()
	switch {
	case f.Value.Type() == "bool" && value == "true" || len(value) > longestValue:
		return "--" + f.Name
	case f.Value.Type() == "bool":
		return "--" + f.Name + "=" + value
	}
	return fmt.Sprintf("--%s %q", f.Name, value)
}

func conjunction(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
