package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatTheBackgroundProcessWaitsForIsRepeatedOnceAndWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	synctest.Test(t, func(t *testing.T) {
		write := func(text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		const first, second = "waiting for etcd, 15 s so far\n", "waiting for etcd, 30 s so far\n"
		var out strings.Builder
		done := repeatWaits(&out, path)
		time.Sleep(1500 * time.Millisecond) // there is no file yet
		write("[1/2] etcd\n" + first + second[:10])
		time.Sleep(2 * time.Second)
		write("[1/2] etcd\n" + first + second)
		time.Sleep(2 * time.Second)
		done()
		if want := first + second; out.String() != want {
			t.Errorf("told %q, want %q", out.String(), want)
		}
	})
}
