package main

import (
	"archive/tar"
	"context"
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

const checkout = "../.."

// unstamped builds without the revision, because a copy of the sources has no git data.
func unstamped(t *testing.T) { t.Setenv("GOFLAGS", "-trimpath -buildvcs=false") }

var shared struct {
	once  sync.Once
	built built
	err   error
}

// wholeImage returns the image. It builds the image once for all tests and keeps it in memory.
func wholeImage(t *testing.T) built {
	t.Helper()
	unstamped(t)
	shared.once.Do(func() {
		shared.built, shared.err = build(context.WithoutCancel(t.Context()), checkout, t.TempDir(), platforms)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.built
}

// imageFor returns the image of one platform from an index.
func imageFor(t *testing.T, index v1.ImageIndex, arch string) v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	must(t, err)
	for _, d := range manifest.Manifests {
		if d.Platform.Architecture == arch {
			image, err := index.Image(d.Digest)
			must(t, err)
			return image
		}
	}
	t.Fatalf("no image for %s in %+v", arch, manifest.Manifests)
	return nil
}

// file is a file of an unpacked image.
type file struct {
	header tar.Header
	data   []byte
}

func unpacked(t *testing.T, image v1.Image) map[string]file {
	t.Helper()
	flat := mutate.Extract(image)
	defer flat.Close()
	files := map[string]file{}
	for r := tar.NewReader(flat); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		data, err := io.ReadAll(r)
		must(t, err)
		files[strings.TrimSuffix(h.Name, "/")] = file{*h, data}
	}
}

func TestTwoBuildsFromDifferentFoldersHaveOneDigest(t *testing.T) {
	unstamped(t)
	want, err := imageFor(t, wholeImage(t).index, "amd64").Digest()
	must(t, err)
	elsewhere := t.TempDir()
	copySources(t, checkout, elsewhere)
	again, err := build(t.Context(), elsewhere, t.TempDir(), []string{"amd64"})
	must(t, err)
	got, err := imageFor(t, again.index, "amd64").Digest()
	must(t, err)
	if got != want {
		t.Errorf("the second build is %s, the first %s", got, want)
	}
	if one, two := listed(t, wholeImage(t).lists[0]), listed(t, again.lists[0]); one != two {
		t.Errorf("bills of materials differ: %.200s\nand\n%.200s", one, two)
	}
}

// copySources copies the sources of the programs without the files that tests create.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"docs", "test"}, name) || d.Name() == "testdata" || len(name) > 1 && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o644)
	})
	must(t, err)
}

func TestBothPlatformsCarryTheSameFilesAndOnlyRootMayChangeThem(t *testing.T) {
	want := []string{"bin", "bin/bash", "etc", "etc/group", "etc/passwd", "etc/ssl", "etc/ssl/certs", "etc/ssl/certs/ca-certificates.crt",
		"tmp", "usr", "usr/local", "usr/local/bin", "usr/local/bin/autoscaler", "usr/local/bin/ray",
		"usr/share", "usr/share/licenses", "usr/share/licenses/heliostat", "usr/share/licenses/heliostat/LICENSE", "usr/share/licenses/heliostat/THIRD-PARTY"}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for _, arch := range platforms {
		files := unpacked(t, imageFor(t, wholeImage(t).index, arch))
		var names []string
		for name, f := range files {
			names = append(names, name)
			if f.header.Uid != 0 || f.header.Gid != 0 || f.header.Typeflag != tar.TypeSymlink && name != "tmp" && f.header.Mode&0o022 != 0 {
				t.Errorf("%s: %s belongs to %d:%d with mode %o", arch, name, f.header.Uid, f.header.Gid, f.header.Mode)
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("%s carries %q, want %q", arch, names, want)
		}
		for _, program := range []program{autoscaler, bash} {
			checkStatic(t, arch+" "+program.path, files[program.path].data, machines[arch])
		}
	}
}

// checkStatic asserts that a program is for the given machine, and that it needs no other file.
func checkStatic(t *testing.T, what string, program []byte, machine elf.Machine) {
	t.Helper()
	read, err := elf.NewFile(strings.NewReader(string(program)))
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if read.Machine != machine {
		t.Errorf("%s is for %s, want %s", what, read.Machine, machine)
	}
	for _, p := range read.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s is linked dynamically", what)
		}
	}
}
