package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// EnvPrefix is the prefix of environment variables that set flags.
const EnvPrefix = "HELIOSTAT_"

// ServerVariable and TokenFileVariable are the environment variables of --server and --token-file, with which commands
// call a server.
const (
	ServerVariable    = EnvPrefix + "SERVER"
	TokenFileVariable = EnvPrefix + "TOKEN_FILE"
)

// SetByEnvironment makes variables set the flags of c that are not on the command line. c must have all of them.
func SetByEnvironment(c *cobra.Command) *cobra.Command {
	const help = "A variable can set each flag that is not on the command line: HELIOSTAT_ and the name in\n" +
		"capitals with _ instead of -, for example HELIOSTAT_LOG_LEVEL=debug."
	c.Long = strings.TrimSpace(c.Long + "\n\n" + help)
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		var errs []error
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if err := setByVariable(c.Flags(), f); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", Variable(f), err))
			}
		})
		if err := errors.Join(errs...); err != nil {
			return BadInput(err)
		}
		return nil
	}
	return c
}

// Variable returns the environment variable of a flag.
func Variable(f *pflag.Flag) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// setByVariable sets a flag. An empty variable sets nothing, so that a Deployment can clear one of its base.
func setByVariable(flags *pflag.FlagSet, f *pflag.Flag) error {
	value := os.Getenv(Variable(f))
	if value == "" || f.Changed || f.Name == "help" {
		return nil
	}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.Replace(strings.Split(value, ","))
	}
	return FlagError(nil, flags.Set(f.Name, value))
}
