package decode

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWordsAreThoseOfBash(t *testing.T) {
	for script, want := range map[string][]string{
		"":                            nil,
		"ray start --block":           {"ray", "start", "--block"},
		"ray start; sleep 1":          {"ray", "start"},
		"ray start && sleep 1":        {"ray", "start"},
		"ray start\nsleep 1":          {"ray", "start"},
		"ray start \\\n --num-cpus=2": {"ray", "start", "--num-cpus=2"},
		`--resources='{"a b": 1}'`:    {`--resources={"a b": 1}`},
		`--resources="{\"a\": \x}"`:   {`--resources={"a": \x}`},
		`a\ b ''`:                     {"a b", ""},
		`"$HOME" 'open ; and | more`:  {"$HOME", "open ; and | more"},
		"ray start # all; of it":      {"ray", "start"},
		"ray start --a=#1 > log 2>&1": {"ray", "start", "--a=#1"},
		"ray start >>log 2>/dev/null": {"ray", "start"},
		"ray start &> log --block":    {"ray", "start", "--block"},
		"a$(cat f; cat g)b ${X:-1 2}": {"a$(cat f; cat g)b", "${X:-1 2}"},
		"echo grün 😀; ray start":      {"echo", "grün", "😀"},
		"ray --a=\x00\xff b":          {"ray", "--a=\x00\xff", "b"},
	} {
		if diff := cmp.Diff(want, shellWords(script)); diff != "" {
			t.Errorf("%s: words (-want +got): %s", script, diff)
		}
	}
}

// Each expectation is what bash prints for the script with printf '[%s]' before the first word of each command.
func TestKnownVariablesAreExpandedAsBashDoes(t *testing.T) {
	values := map[string]string{"N": "2", "FLAGS": `--a='x y' --b`, "EMPTY": ""}
	for script, want := range map[string]string{
		`ray --n=$N ${N}`:     "[ray][--n=2][2]",
		`ray $FLAGS`:          "[ray][--a='x][y'][--b]",
		`ray "$FLAGS"`:        "[ray][--a='x y' --b]",
		`ray '$N' \$N`:        "[ray][$N][$N]",
		`ray $EMPTY "$EMPTY"`: "[ray][]",
		`ray $UNKNOWN`:        "[ray][$UNKNOWN?]",
		`ray "--n=${X:-1}"`:   "[ray][--n=${X:-1}?]",
		"a; (b && c) | d &":   "[a];[b];[c];[d]",
		"# ray start\nb":      "[b]",
	} {
		var commands []string
		for _, command := range shellCommands(script, func(name string) (string, bool) {
			value, known := values[name]
			return value, known
		}) {
			text := ""
			for _, word := range command {
				text += "[" + word.Text + map[bool]string{true: "?"}[word.Unknown] + "]"
			}
			commands = append(commands, text)
		}
		if got := strings.Join(commands, ";"); got != want {
			t.Errorf("%s: got %s, want %s", script, got, want)
		}
	}
}
