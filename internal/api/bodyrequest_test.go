package api

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzDecodeRequest(f *testing.F) {
	for _, seed := range []string{
		``, `[]`, `{}`, `{"num_cpus":4}`, `{"bundles":[{"GPU":1},{"CPU":0.5,"memory":1e9}]}`, `{"bundles":null,"num_cpus":null}`,
		`{"bundles":[{"GPU":1}],"bundle_label_selectors":[{"zone":"!in(a,b)"}]}`, `[{"GPU":1e-5}]`, `{"num_cpus":1e99}`,
		`[{"GPU":1,"slice":{"memory":"10Gi"}},{"resources":{"CPU":2},"slice":{"computeFraction":0.5,"isolation":"any"},"count":3}]`,
		`[{"slice":2,"resources":1,"count":4}]`, `[{"slice":{"memory":"10GB"}}]`, `{"a":[[[{}]]]}`, `{"bundles":[{"GPU":-0}]}`, "[{\"\xff\":1}]", `{"bundles":[{"":1}]} x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		read, err := DecodeRequest(body)
		var known *problem
		if err != nil {
			if !errors.As(err, &known) || known.Kind != kindInvalidRequest || len(known.Fields) == 0 || len(known.Fields) > maxFields+1 {
				t.Fatalf("%q: error %#v is not a bounded problem", body, err)
			}
			return
		}
		merged := read.Merged()
		for _, request := range merged {
			if request.Count < 1 || request.Bundle.IsZero() || len(request.Selectors) > 1 {
				t.Fatalf("%q: merged %+v", body, request)
			}
			for name, amount := range request.Bundle {
				if amount <= 0 || name == "" {
					t.Fatalf("%q: amount %v of %q", body, amount, name)
				}
			}
		}
		text, err := json.Marshal(read)
		if err != nil {
			t.Fatalf("%q: encoding what was read: %v", body, err)
		}
		again, err := DecodeRequest(text)
		if err != nil {
			t.Fatalf("%q: what was read is written as %s, which is refused: %v", body, text, err)
		}
		if diff := cmp.Diff(merged, again.Merged()); diff != "" {
			t.Fatalf("%q changes when it is written and read again:\n%s", body, diff)
		}
	})
}
