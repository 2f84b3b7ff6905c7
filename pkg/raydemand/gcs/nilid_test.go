package gcs

import (
	"bytes"
	"testing"
)

func TestAnIDNamesNothingIfAllOfItsBytesAreFF(t *testing.T) {
	for name, test := range map[string]struct {
		id   []byte
		want bool
	}{
		"no bytes":                   {nil, true},
		"all 0xff":                   {bytes.Repeat([]byte{0xff}, 18), true},
		"one other":                  {append(bytes.Repeat([]byte{0xff}, 17), 0xfe), false},
		"all others are not UTF-8":   {bytes.Repeat([]byte{0x80}, 18), false},
		"only the first one is 0xff": {[]byte{0xff, 1, 2}, false},
	} {
		if got := nilID(test.id); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
