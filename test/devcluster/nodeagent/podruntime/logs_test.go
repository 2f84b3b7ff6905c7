package podruntime

import (
	"io"
	"strings"
	"testing"
)

func TestSeekTail(t *testing.T) {
	long := strings.Repeat("x", 10_000) // longer than a block
	for _, c := range []struct {
		name, log string
		lines     int
		want      string
	}{
		{"the last lines", "a\nb\nc\n", 2, "b\nc\n"},
		{"an unfinished line counts", "a\nb\nc", 2, "b\nc"},
		{"fewer lines than asked for", "a\nb\n", 5, "a\nb\n"},
		{"as many lines as asked for", "a\nb\n", 2, "a\nb\n"},
		{"empty lines count", "a\n\n\n", 2, "\n\n"},
		{"lines longer than a block", "a\n" + long + "\n" + long + "\n", 2, long + "\n" + long + "\n"},
		{"an empty log", "", 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := strings.NewReader(c.log)
			if err := seekTail(log, c.lines); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(log)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("last %d lines of %.20q = %.40q, want %.40q", c.lines, c.log, got, c.want)
			}
		})
	}
}
