package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// ConfigFlag names the flag of the settings file.
const ConfigFlag = "config"

// settingsHelp explains in the help of commands where flags get their values.
const settingsHelp = `You can set each flag in three ways; the first one that sets it counts:
- in the file of --config, YAML with the flags' names as keys: log-level
- on the command line: --log-level=debug
- in a variable, HELIOSTAT_ and the name in capitals with _ instead of -: HELIOSTAT_LOG_LEVEL=debug`

// AddSettings makes a file and the environment set the flags of c, which must have all of them. The file takes
// precedence over the command line, as with KubeRay and Kueue, and the command line over the environment.
func AddSettings(c *cobra.Command) *cobra.Command {
	c.Long = strings.TrimSpace(c.Long + "\n\n" + settingsHelp)
	file := c.Flags().String(ConfigFlag, "", "a YAML file with values of flags, which take precedence over the "+
		"command line")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if err := setByEnvironment(c.Flags(), os.LookupEnv); err != nil {
			return BadInput(err)
		}
		if *file == "" {
			return nil
		}
		if err := setByFile(c.Flags(), *file); err != nil {
			return BadInput(err)
		}
		return nil
	}
	return c
}

// Settable reports whether a file or the environment may set a flag.
func Settable(f *pflag.Flag) bool { return f.Name != "help" && !f.Hidden }

// maxSettings limits a settings file, in bytes: a ConfigMap holds no more.
const maxSettings = 1 << 20

func readSettings(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSettings+1))
	if err == nil && len(text) > maxSettings {
		err = fmt.Errorf("%s is larger than 1 MiB: want names of flags with their values", name)
	}
	return text, err
}

// documents counts the non-empty documents of a YAML text.
func documents(text []byte) (count int) {
	for _, part := range regexp.MustCompile(`(?m)^---(\s|$)`).Split(string(text), -1) {
		if strings.TrimSpace(part) != "" {
			count++
		}
	}
	return count
}

// setByFile sets the flags that a file names. It reports all mistakes at once, each with the file, the key, the value
// and what would be right.
func setByFile(flags *pflag.FlagSet, file string) error {
	text, err := readSettings(file)
	if err != nil {
		return fmt.Errorf("reading --%s: %w", ConfigFlag, err)
	}
	if parts := documents(text); parts > 1 {
		return fmt.Errorf("--%s %s: has %d YAML documents: want one", ConfigFlag, file, parts)
	}
	const want = "want names of flags with their values, such as log-level: debug"
	var content any
	if err := yaml.UnmarshalStrict(text, &content); err != nil {
		return fmt.Errorf("--%s %s: %s: %w", ConfigFlag, file, want, err)
	}
	settings, ok := content.(map[string]any)
	switch {
	case content == nil && strings.TrimSpace(string(text)) != "":
		return nil // comments only
	case content == nil:
		return fmt.Errorf("--%s %s: the file is empty: %s, or {} to set no flag", ConfigFlag, file, want)
	case !ok:
		return fmt.Errorf("--%s %s: is %s: %s", ConfigFlag, file, asJSON(content), want)
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		f := flags.Lookup(key)
		switch {
		case f == nil || key == ConfigFlag || !Settable(f):
			errs = append(errs, fmt.Errorf("%s: %s: no flag has this name: want one that --help lists", file, key))
		case !setByValue(flags, f, settings[key]):
			errs = append(errs, fmt.Errorf("%s: %s: %s: want %s", file, key, asJSON(settings[key]), WantedValue(f)))
		}
	}
	return errors.Join(errs...)
}

// setByValue sets a flag to a value from a file, and reports success.
func setByValue(flags *pflag.FlagSet, f *pflag.Flag, value any) bool {
	list, several := f.Value.(pflag.SliceValue)
	switch value := value.(type) {
	case []any:
		var items []string
		for _, item := range value {
			text, ok := item.(string)
			if !ok {
				return false
			}
			items = append(items, text)
		}
		return several && list.Replace(items) == nil
	case string:
		return !several && flags.Set(f.Name, value) == nil
	case bool:
		return f.Value.Type() == "bool" && flags.Set(f.Name, strconv.FormatBool(value)) == nil
	case float64:
		return !several && flags.Set(f.Name, strconv.FormatFloat(value, 'f', -1, 64)) == nil
	}
	return false
}

// asJSON formats a value of a file, so that the string "5" differs from the number 5.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

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
		if ours && value != "" && !slices.Contains(otherVariables, variable) &&
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

// LogUnknownVariables warns about variables that set nothing.
func LogUnknownVariables(known, environ []string, log *slog.Logger) {
	for _, name := range unknownVariables(known, environ) {
		log.Warn("an environment variable has no effect, because no flag has its name", "variable", EnvPrefix+name)
	}
}

// ServerVariable and TokenFileVariable are the environment variables of --server and --token-file, with which commands
// call a server.
const (
	ServerVariable    = EnvPrefix + "SERVER"
	TokenFileVariable = EnvPrefix + "TOKEN_FILE"
)

// cacheVariable is the cache folder of the Makefile and of the dev cluster, which the README asks you to export.
const cacheVariable = EnvPrefix + "CACHE"

// otherVariables have the prefix of settings and belong to no flag of serve.
var otherVariables = []string{ServerVariable, TokenFileVariable, cacheVariable}
