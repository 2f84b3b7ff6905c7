package shell

import (
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
	} {
		if diff := cmp.Diff(want, Words(script)); diff != "" {
			t.Errorf("%s: words (-want +got): %s", script, diff)
		}
	}
}
