package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
)

func TestFilesThatNeverEndAreRefusedByName(t *testing.T) {
	dir := t.TempDir()
	sparse := filepath.Join(dir, "sparse.yaml")
	if err := os.WriteFile(sparse, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, 1<<40); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"doctor", "nodepools"} {
		for file, want := range map[string]string{
			sparse: sparse + " has 1099511627776 bytes, and at most 268435456 are read",
			dir:    dir + " is a directory: name the files in it",
		} {
			code, _, errOut := command(t, "", "autoscaler", name, "-f", file)
			if code != cli.ExitBadInput || !strings.Contains(errOut, want) {
				t.Errorf("%s -f %s: %d, %s; want %q", name, file, code, errOut, want)
			}
		}
	}
}

func TestAPipeThatNeverEndsIsReadToTheBound(t *testing.T) {
	for name, most := range map[string]int64{"within a buffer": 10, "over many": 100_000} {
		spaces := endless{' '}
		var given int64
		err := cli.ReadFile("-", "manifests", spaces, most, func(in io.Reader) error {
			n, err := io.Copy(io.Discard, in)
			given = n
			if again, more := in.Read(make([]byte, 1)); again != 0 || more != err {
				t.Errorf("%s: after the bound %d bytes, %v", name, again, more)
			}
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "reading manifests from standard input: it has more than ") || given != most {
			t.Errorf("%s: %d bytes, %v; want %d and then the bound", name, given, err, most)
		}
	}
	if err := cli.ReadFile("-", "manifests", strings.NewReader("0123456789"), 10, func(in io.Reader) error {
		text, err := io.ReadAll(in)
		if string(text) != "0123456789" {
			t.Errorf("read %q", text)
		}
		return err
	}); err != nil {
		t.Errorf("as much as may be read: %v", err)
	}
}

// endless is a pipe with unlimited input.
type endless struct{ char byte }

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.char
	}
	return len(p), nil
}
