package raydemand

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAWishIsReadAndWrittenAgainAsTheSame(t *testing.T) {
	for text, want := range map[string]SliceRequirement{
		`{"memory": "10Gi"}`:        {Memory: 10 << 30},
		`{"memory": "10G"}`:         {Memory: 10_000_000_000},
		`{"memory": "4.75Gi"}`:      {Memory: 4864 << 20},
		`{"memory": 1500}`:          {Memory: 1500},
		`{"memory": "1e9"}`:         {Memory: 1_000_000_000},
		`{"memory": "0.5"}`:         {Memory: 1},
		`{"memory": "100Ti"}`:       {Memory: MaxSliceMemory},
		`{"computeFraction": 0.14}`: {ComputeFraction: 0.14},
	} {
		var read, again SliceRequirement
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, read); diff != "" {
			t.Errorf("%s: -want +got\n%s", text, diff)
		}
		written, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(written, &again); err != nil || again != read {
			t.Errorf("%s was written as %s, which is read as %+v (%v)", text, written, again, err)
		}
	}
}

func TestInvalidRequirementNamesFieldValueAndValidForm(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                   `slice: {}: want ` + SliceWant,
		`[]`:                                   `slice: []: want ` + SliceWant,
		`"10Gi"`:                               `slice: "10Gi": want ` + SliceWant,
		`{"memory": "10GB"}`:                   `slice.memory: "10GB": want ` + SliceMemoryWant + `; write 10G without B`,
		`{"memory": "10GiB"}`:                  `slice.memory: "10GiB": want ` + SliceMemoryWant + `; write 10Gi without B`,
		`{"memory": "-1Gi"}`:                   `slice.memory: "-1Gi": want ` + SliceMemoryWant,
		`{"memory": -1}`:                       `slice.memory: -1: want ` + SliceMemoryWant,
		`{"memory": 0}`:                        `slice.memory: 0: want ` + SliceMemoryWant,
		`{"memory": 0.5}`:                      `slice.memory: 0.5: want ` + SliceMemoryWant,
		`{"memory": null, "isolation": "any"}`: `slice.memory: null: want ` + SliceMemoryWant,
		`{"isolation": null}`:                  `slice.isolation: null: want ` + SliceIsolationWant,
		`{"memory": ""}`:                       `slice.memory: "": want ` + SliceMemoryWant,
		`{"memory": "0x10Gi"}`:                 `slice.memory: "0x10Gi": want ` + SliceMemoryWant,
		`{"memory": "NaN"}`:                    `slice.memory: "NaN": want ` + SliceMemoryWant,
		`{"memory": "101Ti"}`:                  `slice.memory: "101Ti": want ` + SliceMemoryWant,
		`{"memory": "9223372036854775807Ti"}`:  `slice.memory: "9223372036854775807Ti": want ` + SliceMemoryWant,
		`{"computeFraction": 14}`:              `slice.computeFraction: 14: want ` + SliceComputeWant,
		`{"computeFraction": 0}`:               `slice.computeFraction: 0: want ` + SliceComputeWant,
		`{"computeFraction": "7%"}`:            `slice.computeFraction: "7%": want ` + SliceComputeWant,
		`{"isolation": "none"}`:                `slice.isolation: "none": want ` + SliceIsolationWant,
		`{"memroy": "1Gi"}`:                    `slice.memroy: "1Gi": want one of the keys memory, computeFraction, isolation`,
	} {
		_, err := ParseSliceRequirement([]byte(text))
		var refused *SliceError
		if !errors.As(err, &refused) || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

func TestAWishWithoutGPUsMeansOne(t *testing.T) {
	given := Request{Bundle: Bundle{CPU: One}, Count: 2, Slice: &SliceRequirement{Memory: 1}}
	if diff := cmp.Diff(Bundle{CPU: One, GPU: One}, given.Sliced().Bundle); diff != "" {
		t.Error(diff)
	}
	if given.Bundle.Has(GPU) != 0 {
		t.Error("the bundle that was given has been changed")
	}
	half := Request{Bundle: Bundle{GPU: One / 2}, Slice: &SliceRequirement{Memory: 1}}
	if got := half.Sliced().Bundle[GPU]; got != One/2 {
		t.Errorf("half a GPU became %s", got)
	}
}
