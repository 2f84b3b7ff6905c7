// Package licenses detects the licenses of the modules that are linked into a program, and compares them with the list
// of licenses that Heliostat allows. It reads only the module cache. It must not download anything, and it does not
// check whether a module complies with its own license.
package licenses

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Program is a program, or a package whose data is part of a program. The go command lists the packages that are linked
// into it.
type Program struct {
	// Dir is a directory in the program's module. Package is the package path relative to it.
	Dir, Package string
	// Arch is a GOARCH. Tags are build tags. With the tag nvml, the program needs cgo.
	Arch, Tags string
}

// Module is a module that is linked into programs. Go's standard library is a module with the name stdlib.
type Module struct {
	Path, Version string
	// Dir is the directory of the module in the module cache.
	Dir string
	// Files are the licenses and notices of the linked packages. They are in a package's directory or in a parent
	// directory, up to the module's root.
	Files []File
}

// File is a license or a notice.
type File struct {
	// Name is the path of the file in the module.
	Name string
	Text []byte
	// Notice means that the file must be distributed with the program, but names no license. Examples are the NOTICE of
	// the Apache license and the PATENTS of Go's modules.
	Notice bool
}

// Stdlib is the module name of the Go standard library.
const Stdlib = "stdlib"

var (
	licenseFile = regexp.MustCompile(`(?i)^(un)?licen[sc]e|^copying`)
	noticeFile  = regexp.MustCompile(`(?i)^(notice|patents)`)
)

// Linked returns the modules that are linked into any of the programs, including the standard library, sorted by path
// and version.
func Linked(ctx context.Context, programs ...Program) ([]Module, error) {
	lists, errs := make([]listing, len(programs)), make([]error, len(programs))
	var listed sync.WaitGroup
	for i, p := range programs {
		listed.Go(func() { lists[i], errs[i] = p.list(ctx) })
	}
	listed.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	stdlib, err := standardLibrary(ctx)
	if err != nil {
		return nil, err
	}
	dirs := listing{stdlib: {stdlib.Dir: true}}
	for _, list := range lists {
		for module, packages := range list {
			for dir := range packages {
				dirs.add(module, dir)
			}
		}
	}
	modules := make([]Module, 0, len(dirs))
	for key, packages := range dirs {
		files, err := filesOf(key.Dir, packages)
		if err != nil {
			return nil, fmt.Errorf("reading licenses of %s %s: %w", key.Path, key.Version, err)
		}
		modules = append(modules, Module{Path: key.Path, Version: key.Version, Dir: key.Dir, Files: files})
	}
	slices.SortFunc(modules, func(a, b Module) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
	})
	return modules, nil
}

// moduleKey identifies a module and its directory.
type moduleKey struct{ Path, Version, Dir string }

// listing contains the directories of linked packages by module.
type listing map[moduleKey]map[string]bool

func (l listing) add(module moduleKey, dir string) {
	if l[module] == nil {
		l[module] = map[string]bool{}
	}
	l[module][dir] = true
}

// list runs the go command. It omits the program's own module and the other modules of this repository.
func (p Program) list(ctx context.Context) (listing, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-tags="+p.Tags, "-json=Dir,Module", p.Package)
	cgo := "0"
	if p.Tags != "" {
		cgo = "1"
	}
	cmd.Dir, cmd.Env = p.Dir, append(os.Environ(), "GOOS=linux", "GOARCH="+p.Arch, "CGO_ENABLED="+cgo, "GOWORK=off")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing what %s in %s is linked from: %w\n%s", p.Package, p.Dir, err,
			bytes.TrimSpace(said.Bytes()))
	}
	found := listing{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var linked struct {
			Dir    string
			Module *struct {
				moduleKey
				Main    bool
				Replace *moduleKey
			}
		}
		if err := decoder.Decode(&linked); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading what %s is linked from: %w", p.Package, err)
		}
		if m := linked.Module; m != nil && !m.Main {
			key := m.moduleKey
			if m.Replace != nil {
				key.Path, key.Version = m.Replace.Path, m.Replace.Version
			}
			found.add(key, linked.Dir)
		}
	}
}

// standardLibrary returns the standard library of the go command that builds the programs.
func standardLibrary(ctx context.Context) (moduleKey, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION").Output()
	root, version, found := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || !found {
		return moduleKey{}, fmt.Errorf("finding the standard library: %w",
			errors.Join(err, fmt.Errorf("go env printed %q", out)))
	}
	return moduleKey{Path: Stdlib, Version: strings.TrimPrefix(version, "go"), Dir: root}, nil
}

// filesOf reads the licenses and notices from the directories of packages and their parents, up to the module's root.
func filesOf(root string, packages map[string]bool) ([]File, error) {
	folders := map[string]bool{}
	for dir := range packages {
		for at := dir; len(at) >= len(root) && !folders[at]; at = filepath.Dir(at) {
			folders[at] = true
		}
	}
	var files []File
	for folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name := e.Name()
			notice := noticeFile.MatchString(name)
			if !e.Type().IsRegular() || strings.HasSuffix(name, ".go") || !notice && !licenseFile.MatchString(name) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				return nil, err
			}
			within, err := filepath.Rel(root, filepath.Join(folder, name))
			if err != nil {
				return nil, err
			}
			files = append(files, File{Name: filepath.ToSlash(within), Text: text, Notice: notice})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}
