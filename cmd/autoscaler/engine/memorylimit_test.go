package engine

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheMemoryLimitOfTheContainerIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		self  string
		files map[string]string
		want  int64
	}{
		"version 2":                        {"0::/pods/heliostat\n", map[string]string{"pods/heliostat/memory.max": "1073741824\n"}, 1 << 30},
		"version 2, no limit":              {"0::/pods\n", map[string]string{"pods/memory.max": "max\n"}, math.MaxInt64},
		"version 2, the pod's is lower":    {"0::/pod/c\n", map[string]string{"pod/c/memory.max": "1073741824", "pod/memory.max": "536870912"}, 512 << 20},
		"version 2, mounted as the root":   {"0::/../../elsewhere\n", map[string]string{"memory.max": "268435456"}, 256 << 20},
		"version 1":                        {"5:cpu:/x\n4:memory:/pods/h\n0::/\n", map[string]string{"memory/pods/h/memory.limit_in_bytes": "268435456"}, 256 << 20},
		"version 1, no limit":              {"4:memory:/\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712"}, math.MaxInt64},
		"version 1, mounted as the root":   {"4:memory:/kubepods/x\n", map[string]string{"memory/memory.limit_in_bytes": "268435456"}, 256 << 20},
		"what the kernel does not write":   {"nonsense\n", map[string]string{"memory.max": "many"}, math.MaxInt64},
		"a limit of nothing that is there": {"0::/x\n", nil, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			self := filepath.Join(root, "self")
			if err := os.WriteFile(self, []byte(c.self), 0o600); err != nil {
				t.Fatal(err)
			}
			for file, text := range c.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := containerMemory(self, root); got != c.want {
				t.Errorf("the limit is %d, want %d", got, c.want)
			}
		})
	}
	if got := containerMemory("/nowhere/at/all", "/"); got != math.MaxInt64 {
		t.Errorf("without a kernel that tells, the limit is %d", got)
	}
}

func TestTheRuntimeMayTakeMoreThanWhatLivesAndLessThanTheContainerHas(t *testing.T) {
	for _, c := range []struct {
		live, beside uint64
		container    int64
		want         int64
	}{
		{20 << 20, 10 << 20, math.MaxInt64, calmMemory},
		{20 << 20, 10 << 20, 100 << 20, 94371840}, // 90 MiB
		{100 << 20, 0, math.MaxInt64, 200 << 20},
		{400 << 20, 0, math.MaxInt64, 592 << 20},
		{400 << 20, 100 << 20, math.MaxInt64, 692 << 20},
		{1000 << 20, 0, math.MaxInt64, 1400 << 20},
		{400 << 20, 100 << 20, 500 << 20, 450 << 20},
	} {
		if got := runtimeMemory(c.live, c.beside, c.container); got != c.want {
			t.Errorf("with %d MiB alive of %d: %d, want %d", c.live>>20, c.container, got, c.want)
		}
	}
}

func TestStacksCountBesideTheHeap(t *testing.T) {
	used := usedMemory()
	_, before := used()
	end := make(chan struct{})
	for range 2000 {
		go func() { <-end }()
	}
	_, after := used()
	close(end)
	if grown := int64(after) - int64(before); grown < 1<<20 {
		t.Errorf("2,000 goroutines take %d bytes beside the heap, want 2 KiB each", grown)
	}
}

func TestTheMemoryLimitIsAdjustedUntilItsOwnerStopsIt(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	synctest.Test(t, func(t *testing.T) {
		stop := keepMemory(slog.New(slog.DiscardHandler))
		time.Sleep(3 * memoryPause)
		stop() // a goroutine that still runs fails the test
	})
}
