package cli

import (
	"cmp"
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

	"heliostat.dev/heliostat/internal/fieldpath"
)

// ConfigFlag names the flag of the settings file.
const ConfigFlag = "config"

// settingsHelp explains in the help of commands where flags get their values.
const settingsHelp = `You can set each flag in three ways; the first one that sets it counts:
- in the file of --config, YAML with the flags' names as keys: log-level or logLevel
- on the command line: --log-level=debug
- in a variable, HELIOSTAT_ and the name in capitals with _ instead of -: HELIOSTAT_LOG_LEVEL=debug`

// AddSettings makes a file and the environment set the flags of c, which must have all of them. The file takes
// precedence over the command line, as with KubeRay and Kueue, and the command line over the environment.
func AddSettings(c *cobra.Command) *cobra.Command {
	c.Long = strings.TrimSpace(c.Long + "\n\n" + settingsHelp)
	file := c.Flags().String(ConfigFlag, "", "a YAML file with values of flags, which take precedence over the "+
		"command line")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if err := errors.Join(setByEnvironment(c.Flags(), os.LookupEnv),
			RefuseMisspelled(Variables(c.Flags()), os.Environ())); err != nil {
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
		return cmp.Or(keyFault(flags, file, text, err), fmt.Errorf("--%s %s: %s: %w", ConfigFlag, file, want, err))
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
	keys := map[string]string{} // by the flag that they set
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		f := flagOfKey(flags, key)
		switch {
		case f == nil:
			errs = append(
				errs,
				fmt.Errorf("%s: %s: no flag has this name%s", file, key,
					cmp.Or(closestName(key, keysOf(flags), ""), ": want one that --help lists")),
			)
			continue
		case keys[f.Name] != "":
			errs = append(errs,
				fmt.Errorf("%s: %s and %s are the same flag: want one of them", file, keys[f.Name], key))
			continue
		}
		keys[f.Name] = key
		if !setByValue(flags, f, settings[key]) {
			errs = append(
				errs,
				fmt.Errorf("%s: %s: %s: want %s", file, key, asJSON(settings[key]),
					WantedValue(f)+quoted(f, settings[key])),
			)
		}
	}
	return errors.Join(errs...)
}

var (
	// keyTwice is what the YAML reader says of a key that is there already.
	keyTwice = regexp.MustCompile(`line (\d+): key "(.*)" already set in map`)
	// notFinite matches a key with a number that YAML has and JSON has not.
	notFinite = regexp.MustCompile(`(?im)^\s*([\w-]+)\s*:\s*([-+]?\.(?:inf|nan))\b`)
)

// keyFault returns an error that names the key because of which a file cannot be read, or nil if it is none.
func keyFault(flags *pflag.FlagSet, file string, text []byte, err error) error {
	if found := keyTwice.FindStringSubmatch(err.Error()); found != nil {
		return fmt.Errorf("%s: %s: is there twice, again in line %s: want it once", file, found[2], found[1])
	}
	if found := notFinite.FindSubmatch(text); found != nil {
		if f := flagOfKey(flags, string(found[1])); f != nil {
			return fmt.Errorf("%s: %s: %s: want %s", file, found[1], found[2], WantedValue(f))
		}
	}
	return nil
}

// flagOfKey returns the flag of a key: its name, kube-api-qps, or its name in one word, kubeApiQps or kubeAPIQPS; nil
// if there is none.
func flagOfKey(flags *pflag.FlagSet, key string) (found *pflag.Flag) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != ConfigFlag && Settable(f) &&
			(key == f.Name || strings.EqualFold(key, strings.ReplaceAll(f.Name, "-", ""))) {
			found = f
		}
	})
	return found
}

// keysOf returns the keys that a file may have.
func keysOf(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != ConfigFlag && Settable(f) {
			names = append(names, f.Name)
		}
	})
	return names
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

// quoted returns a hint if YAML parsed a word as a truth value.
func quoted(f *pflag.Flag, value any) string {
	if _, truth := value.(bool); truth && f.Value.Type() == "string" {
		return `, in quotes if YAML would parse it as another type, such as "off"`
	}
	return ""
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

// ServerVariable and TokenFileVariable are the environment variables of --server and --token-file, with which commands
// call a server.
const (
	ServerVariable    = EnvPrefix + "SERVER"
	TokenFileVariable = EnvPrefix + "TOKEN_FILE"
)

// clientVariables are their names without the prefix.
var clientVariables = []string{"SERVER", "TOKEN_FILE"}

// cacheVariable is the cache folder of the Makefile and of the dev cluster, which the README asks you to export.
const cacheVariable = EnvPrefix + "CACHE"

// otherVariables have the prefix of settings and belong to no flag of serve.
var otherVariables = []string{ServerVariable, TokenFileVariable, cacheVariable}
