package fieldpath

import (
	"strings"
	"testing"
)

func TestTheFirstFaultOfADocumentNamesFieldValueAndWhatIsRight(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": 7, "nodes": 8}`:                  "name: 7: want a string",
		`{"name": "", "nodes": []}`:                `name: "": want a name`,
		`{"nodes": []}`:                            "name: missing: want a name",
		`{"nam": "a", "nodes": []}`:                "name: missing: want a name; nam is unknown",
		`{"name": "a", "nodes": {}}`:               "nodes: {}: want a list […]",
		`{"name": "a", "nodes": [{}, null]}`:       "nodes[1]: null: want an object {…}",
		`{"name": "a", "nodes": [{"count": 0.5}]}`: "nodes[0].count: 0.5: want a whole number from 0 to 9",
		`{"name": "a", "nodes": [{"count": 10}]}`:  "nodes[0].count: 10: want a whole number from 0 to 9",
		`{"name": "a", "nodes": [{"since": "x"}]}`: `nodes[0].since: "x": want a time such as 2026-01-31T12:00:00Z`,
		`{"name": "a", "nodes": [{"coun": 1}]}`:    "nodes[0].coun: unknown key: want count",
		`{"name": "a", "nodes": [], "else": 1}`:    "else: unknown key: want one of name, nodes",
		`{"name": "a", "nodes": [], "note": 1}`:    "",
		`7`:                                        "7: want an object {…}",
	} {
		in, doc := Read([]byte(text))
		root := in.Members()
		root.Pick("name").NonEmpty("a name")
		for _, each := range root.Pick("nodes").Objects() {
			node := each.Members()
			node.Pick("count").Count(0, 9, 1)
			node.Pick("since").Time()
			node.Done()
		}
		root.Done("note")
		got := ""
		if fault := doc.Strict(); fault != nil {
			got = fault.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestLongValuesAreShownInPart(t *testing.T) {
	in, doc := Read([]byte(`{"name": [` + strings.Repeat("1, ", 5000) + `1]}`))
	in.Members().Pick("name").Text()
	if got := doc.Fault().Value; len(got) > mostOfText+len("…") || !strings.HasSuffix(got, "…") {
		t.Errorf("got %q", got)
	}
}

func TestTooManyMembersAreNotDecoded(t *testing.T) {
	in, doc := Read([]byte("[" + strings.Repeat("{},", MostMembers) + "{}]"))
	if got := in.List(); len(got) != 0 || doc.Fault() == nil || doc.Fault().Want != "at most 100000 members" {
		t.Errorf("got %d elements, %v", len(got), doc.Fault())
	}
}

func TestRepeatedKeysAreFoundInTheSameObjectOnly(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 1}]}`: "",
		`{"a": 1, "a": 2}`: "a",
		`{"a": "\"", "b": [{"x": "{"}, {"y": 1, "y": 1}]}`: "b[1].y",
		`{"k": {"a.b": 1, "a\u002eb": 1}}`:                 `k["a.b"]`,
	} {
		path, found := RepeatedKey([]byte(text))
		if path.String() != want || found != (want != "") {
			t.Errorf("%s: got %q, %t, want %q", text, path, found, want)
		}
	}
}
