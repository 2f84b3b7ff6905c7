package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

func TestVolatileFieldsAreNoChangeInAFile(t *testing.T) {
	draw := func(f *frames, text string) {
		if err := f.draw(t.Context(), func(_ context.Context, out io.Writer) error {
			_, err := io.WriteString(out, text)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ first, older, other string }{
		"ages":             {"2 idle, longest 9.3s of 60s\n", "2 idle, longest 2m30s of 60s\n", "1 idle, longest 2m30s of 60s\n"},
		"times":            {"last decision 2026-11-20T12:00:00Z\n", "last decision 2026-11-20T12:00:01.5Z\n", "no decision\n"},
		"fields":           {"{\n  \"dataAgeSeconds\": 0.1,\n  \"a\": 1\n}\n", "{\n  \"dataAgeSeconds\": 12,\n  \"a\": 1\n}\n", "{\n  \"dataAgeSeconds\": 12,\n  \"a\": 2\n}\n"},
		"what is like one": {"pod a-3d goes\n", "pod a-3d goes\n", "pod a-4d goes\n"},
	} {
		var out strings.Builder
		file := frames{out: &out, between: "\n"}
		draw(&file, c.first)
		draw(&file, c.older)
		draw(&file, c.other)
		if want := c.first + "\n" + c.other; out.String() != want {
			t.Errorf("%s: wrote %q, want %q", name, out.String(), want)
		}
	}
}
