package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// EnvPrefix is the prefix of environment variables that set flags.
const EnvPrefix = "HELIOSTAT_"

// serviceVariable matches the variables that Kubernetes itself sets in pods for each Service in their namespace whose
// name begins with heliostat.
var serviceVariable = regexp.MustCompile(
	`^HELIOSTAT(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` +
		`PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`,
)

// Variable returns the environment variable of a flag.
func Variable(f *pflag.Flag) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// setByEnvironment sets the flags that are not on the command line. An empty variable sets nothing, so that a
// Deployment can clear one of its base.
func setByEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		value, _ := lookup(Variable(f))
		if value == "" || f.Changed || !Settable(f) {
			return
		}
		var err error
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = list.Replace(strings.Split(value, ","))
		} else {
			err = flags.Set(f.Name, value)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: want %s", Variable(f), value, WantedValue(f)))
		}
	})
	return errors.Join(errs...)
}

// unknownVariables returns the names, without the prefix, of variables that look like settings but belong to no flag,
// no Service and no other command.
func unknownVariables(known, environ []string) (names []string) {
	for _, pair := range environ {
		variable, value, _ := strings.Cut(pair, "=")
		name, ours := strings.CutPrefix(variable, EnvPrefix)
		if ours && value != "" && variable != ServerVariable && variable != cacheVariable &&
			!serviceVariable.MatchString(variable) &&
			!slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Variables returns the names, without the prefix, of variables that set flags.
func Variables(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if Settable(f) {
			names = append(names, strings.TrimPrefix(Variable(f), EnvPrefix))
		}
	})
	return names
}

// RefuseMisspelled returns an error for variables that are obviously misspelled flags. LogUnknownVariables logs the
// others, which may have a use outside of the program.
func RefuseMisspelled(known, environ []string) error {
	var errs []error
	for _, name := range unknownVariables(known, environ) {
		if meant := fieldpath.Slip(name, known); meant != "" {
			errs = append(errs, fmt.Errorf("%s: no flag has this name: want %s", EnvPrefix+name, EnvPrefix+meant))
		}
	}
	return errors.Join(errs...)
}

// LogUnknownVariables warns about variables that set nothing.
func LogUnknownVariables(known, environ []string, log *slog.Logger) {
	for _, name := range unknownVariables(known, environ) {
		log.Warn("an environment variable has no effect, because no flag has its name"+
			closestName(name, known, EnvPrefix), "variable", EnvPrefix+name)
	}
}

// ServerVariable is the environment variable of --server.
const ServerVariable = "HELIOSTAT_SERVER"

// cacheVariable is the cache folder of the Makefile and of the dev cluster, which the README asks you to export.
const cacheVariable = EnvPrefix + "CACHE"
