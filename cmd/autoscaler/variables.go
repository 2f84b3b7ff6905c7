package main

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/internal/typo"
)

// envPrefix begins the names of variables that stand for flags.
const envPrefix = "HELIOSTAT_"

// cacheEnv is the directory of the Makefile and of the dev cluster; README tells people to export it.
const cacheEnv = envPrefix + "CACHE"

// ofService are variables that Kubernetes itself gives the pods of a namespace for each Service there whose name begins with heliostat.
var ofService = regexp.MustCompile(`^HELIOSTAT(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// variable is the name of the variable that stands for a flag.
func variable(f *pflag.Flag) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// setByEnvironment sets the flags that the command line does not have. A variable that is empty sets nothing: that is how a Deployment takes away
// one that its base has.
func setByEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		value, _ := lookup(variable(f))
		if value == "" || f.Changed || !settable(f) {
			return
		}
		var err error
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = list.Replace(strings.Split(value, ","))
		} else {
			err = flags.Set(f.Name, value)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: want %s", variable(f), value, wanted(f)))
		}
	})
	return errors.Join(errs...)
}

// stray are the names, without the prefix, of variables that look like settings and set nothing: no flag has them, and neither a Service nor
// another command.
func stray(known, environ []string) (names []string) {
	for _, pair := range environ {
		variable, value, _ := strings.Cut(pair, "=")
		name, ours := strings.CutPrefix(variable, envPrefix)
		if ours && value != "" && variable != serverEnv && variable != cacheEnv && !ofService.MatchString(variable) && !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// variables are the names, without the prefix, of variables that set flags.
func variables(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if settable(f) {
			names = append(names, strings.TrimPrefix(variable(f), envPrefix))
		}
	})
	return names
}

// refuseSlips refuses variables that mean a flag beyond doubt. Others are left to tellStray: who starts the program may have use for them.
func refuseSlips(known, environ []string) error {
	var errs []error
	for _, name := range stray(known, environ) {
		if meant := typo.Slip(name, known); meant != "" {
			errs = append(errs, fmt.Errorf("%s: no flag has this name: want %s", envPrefix+name, envPrefix+meant))
		}
	}
	return errors.Join(errs...)
}

// tellStray warns of variables that set nothing.
func tellStray(known, environ []string, log *slog.Logger) {
	for _, name := range stray(known, environ) {
		log.Warn("a variable sets nothing, since no flag has its name"+meant(name, known, envPrefix), "variable", envPrefix+name)
	}
}
